/** A sample of the soak's faults: each victim once, in a randomly chosen state. */
import { randomInt } from "node:crypto"
import { afterAll, expect, it } from "vitest"
import { describeWithRadosgw } from "../../world/programs/radosgw.ts"
import { cleanUp } from "../../world/server/server.ts"
import { type FaultEnd, moments, shareFaults, victims } from "./faults.ts"

const faults_ms_max = 600_000

afterAll(cleanUp)

describeWithRadosgw("faults in the middle of a backup", () => {
  it(
    "end it right, and leave no lock for a human",
    async () => {
      const ends: Array<FaultEnd> = []
      const faults = victims.map((victim) => {
        // The index is within the array.
        const moment = moments[randomInt(moments.length)] as (typeof moments)[number]
        return { victim, moment }
      })
      await shareFaults(faults, (end) => {
        console.log(JSON.stringify(end))
        ends.push(end)
      })
      expect(ends).toHaveLength(victims.length)
    },
    faults_ms_max,
  )
})
