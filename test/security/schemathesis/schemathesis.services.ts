/** schemathesis, which knows nothing of this program but its API document, finds no fault. */
import { afterAll, describe, expect, it } from "vitest"
import { describeAbsent } from "../../world/programs/absent.ts"
import { cleanUp } from "../../world/server/server.ts"
import { missingPip } from "./program.ts"
import { accepted_min, schemathesis } from "./run.ts"

const seed = 1
/** With the installation and the start this takes about a minute on an idle machine. */
const examples = 8
/** Installation, two imports, and a start on a busy machine. */
const run_ms_max = 480_000

const operations_min = 120
const requests_min = 700

const why = missingPip()
const name = "the API, tested from its document"

const define = () => {
  afterAll(cleanUp)

  it(
    "never fails, responds as documented, and accepts half of the valid requests",
    async () => {
      const verdict = await schemathesis({ seed, examples })
      const { wrong, loose, accepted, operations, requests, output } = verdict
      expect({ wrong, loose }, output).toEqual({ wrong: [], loose: [] })
      expect(operations, output).toBeGreaterThan(operations_min)
      expect(requests, output).toBeGreaterThan(requests_min)
      expect(accepted).toBeGreaterThan(accepted_min)
    },
    run_ms_max,
  )
}

if (why === undefined) describe(name, define)
else describeAbsent(name, "pip", why)
