/**
 * Workers whose machines went with the server that ran them: after a restart each gets its machine
 * again, as if it had been switched off and on. One that had jobs is left to the conductor, which
 * misses its heartbeats: what it did was cut off, and has to be told as a worker's death.
 */
import { Effect, Stream } from "effect"
import type { Compute } from "#actors/share-protection/ports/compute.ts"
import { Worker, workerAfter } from "#actors/share-protection/worker.ts"
import { Log, parseStream } from "#events/log.ts"
import { WorkerId } from "#schemas/share-protection/id.ts"

/** Boots the machines of all workers that the log has ready and idle, and that are not there. */
export const reviveWorkers = Effect.fnUntraced(function* (compute: Compute["Service"]) {
  const log = yield* Log
  yield* Stream.runForEach(log.lasts(Worker.name), (recorded) =>
    Effect.gen(function* () {
      const { state, image, project_id, domain_id, running_jobs } = yield* workerAfter(
        log,
        recorded,
      )
      const is_idle = (state === "ready" || state === "draining") && running_jobs.length === 0
      if (!is_idle || image === null || project_id === null) return
      const worker_id = WorkerId.make(parseStream(recorded.stream).id)
      yield* compute.boot({ worker_id, image, project_id, domain_id })
    }).pipe(
      // Without a machine it falls silent, and another worker is booted.
      Effect.catch(({ detail }) => Effect.logWarning(`A worker stays away: ${detail}`)),
    ),
  )
})
