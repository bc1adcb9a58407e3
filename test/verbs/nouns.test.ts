/** What `--help` of a noun shows, before one looks at that of a verb. */
import { assert, describe, it } from "@effect/vitest"
import { audit } from "#verbs/audit.ts"
import { blobs } from "#verbs/blobs.ts"
import { carriers } from "#verbs/carriers.ts"
import { catalog } from "#verbs/catalog.ts"
import { cluster } from "#verbs/cluster.ts"
import { demo } from "#verbs/demo.ts"
import { events } from "#verbs/events.ts"
import { log } from "#verbs/log.ts"
import { dashboard, operators, share_protection, subscribers } from "#verbs/nouns.ts"
import { plant } from "#verbs/plant.ts"
import { secret } from "#verbs/secret.ts"
import { token } from "#verbs/token.ts"
import { trust } from "#verbs/trust.ts"

const of_the_api = { ...share_protection, ...operators, ...subscribers, ...dashboard }
const loaded = await Promise.all(Object.values(of_the_api).map((load) => load()))
const made = [audit, blobs, carriers, catalog, cluster, demo, events, log, plant, secret, token]
const nouns = [...loaded, ...made, trust]

describe("the help of a noun", () => {
  for (const { name, examples } of nouns) {
    it(`${name} shows an example of one of its verbs`, () => {
      assert.isAbove(examples.length, 0)
      for (const { command } of examples) assert.match(command, new RegExp(`\\balmanac ${name} `))
    })
  }
})
