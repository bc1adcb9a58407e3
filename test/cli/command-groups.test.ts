/** The `--help` of a command group, which lists its commands. */
import { assert, describe, it } from "@effect/vitest"
import { catalog } from "#cli/access/catalog.ts"
import { secret } from "#cli/access/secret.ts"
import { token } from "#cli/access/token.ts"
import { trust } from "#cli/access/trust.ts"
import { audit } from "#cli/audit/audit.ts"
import { blobs } from "#cli/blobs/blobs.ts"
import { cluster } from "#cli/blobs/cluster.ts"
import { carriers } from "#cli/carriers/carriers.ts"
import { summaries } from "#cli/client/summaries.ts"
import { dashboard, operators, share_protection, subscribers } from "#cli/command-groups.ts"
import { demo } from "#cli/demo/demo.ts"
import { events } from "#cli/events.ts"
import { log } from "#cli/log/log.ts"
import { plant } from "#cli/plant/plant.ts"

const of_the_api = { ...share_protection, ...operators, ...subscribers, ...dashboard }
const loaded = await Promise.all(Object.values(of_the_api).map((load) => load()))
const made = [audit, blobs, carriers, catalog, cluster, demo, events, log, plant, secret, token]
const nouns = [...loaded, ...made, trust]

const summaryOf: Readonly<Record<string, string>> = summaries

describe("the help of a noun", () => {
  for (const { name, description, examples } of nouns) {
    it(`${name} begins as its line in the help of almanac`, () => {
      assert.equal(description, summaryOf[name])
    })

    it(`${name} shows an example of one of its commands`, () => {
      assert.isAbove(examples.length, 0)
      for (const { command } of examples) assert.match(command, new RegExp(`\\balmanac ${name} `))
    })
  }
})
