/**
 * Boots workers again that stopped with the server: after its restart each continues as after a
 * reboot. Workers with running jobs are left to the conductor, which detects the missing heartbeats
 * and records their death, because their work was interrupted.
 */
import { Effect, Stream } from "effect"
import type { Compute } from "#actors/share-protection/ports/compute.ts"
import { Worker, workerAfter } from "#actors/share-protection/worker.ts"
import { Log, parseStream } from "#events/log.ts"
import { WorkerId } from "#schemas/share-protection/id.ts"

/** Boots the machines of all workers that are ready and idle according to the log. */
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
      // Without a machine its heartbeats stop, and the conductor boots another worker.
      Effect.catch(({ detail }) => Effect.logWarning(`A worker could not be restarted: ${detail}`)),
    ),
  )
})
