import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { LiveWorkers, makeLiveWorkers } from "#actors/share-protection/ports/live-workers.ts"
import { JobId, WorkerId } from "#schemas/share-protection/id.ts"
import { promises } from "../../contract/share-protection/live-workers.ts"
import { uuid } from "../../world/share-protection/samples.ts"

describe("LiveWorkers in memory", () => {
  for (const [sentence, promise] of Object.entries(promises)) {
    it.live(sentence, () => Effect.provide(promise, LiveWorkers.memory, { local: true }))
  }
})

describe("the table of heartbeats", () => {
  it.effect("is bounded: it evicts the worker that was silent longest with its jobs", () =>
    Effect.gen(function* () {
      const { record, find, progressOf } = makeLiveWorkers(3)
      const beat = (n: number) => {
        const job_id = JobId.make(uuid(n))
        const values = { job_id, progress: n, bytes_done: 0, bytes_total: 0 }
        return record({ worker_id: WorkerId.make(`worker-${n}`), jobs: [values] })
      }
      for (const n of [1, 2, 3, 1, 4]) yield* beat(n)
      const known = [1, 2, 3, 4].filter((n) => find(`worker-${n}`) !== undefined)
      assert.deepEqual(known, [1, 3, 4])
      assert.deepEqual(
        [1, 2, 3, 4].filter((n) => progressOf(uuid(n)) !== undefined),
        known,
      )
    }),
  )
})
