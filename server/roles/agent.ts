/**
 * The role `agent` in a process without the conductor: the process is a worker itself, like
 * `almanac agent`. With the conductor, the role means the machines that it boots (`outside.ts`).
 *
 * Source: decision 0140.
 */
import { Effect, Fiber } from "effect"
import { v7 } from "uuid"
import { default_image } from "#adapters/share-protection/compute-images.ts"
import { NatsServer } from "#bus"
import type { Settings } from "#schemas/settings.ts"
import { WorkerId } from "#schemas/share-protection/id.ts"
import { workerProject } from "#server/agent/ports.ts"
import { runAgent } from "#server/agent/run.ts"
import type { SettingsSources } from "#server/program.ts"

/** Pause before a dismissed or rejected worker starts again with a new id, in ms. */
const again_ms = 5_000

/**
 * Works in the background until the scope closes. `ready` returns why it does not work, undefined
 * if it does; `shutdown` stops it without waiting.
 */
export const worker = Effect.fnUntraced(function* (settings: Settings, sources: SettingsSources) {
  const { servers } = yield* NatsServer
  let why: string | undefined
  const once = Effect.gen(function* () {
    const worker_id = WorkerId.make(v7())
    const credentials = {
      worker_id,
      project_id: yield* workerProject(settings),
      domain_id: null,
      image_version: default_image,
      nats: { servers, seed: null },
      sources,
    }
    why = undefined
    return yield* Effect.annotateLogs(runAgent(credentials, settings), { worker_id })
  })
  const again = once.pipe(
    // Otherwise the worker would end while the process still reports it as ready.
    Effect.catchDefect((defect) =>
      Effect.andThen(
        Effect.logError("The worker failed.", defect),
        Effect.fail({ message: "it failed; see the log" }),
      ),
    ),
    Effect.catch(({ message }) => {
      why = `cannot run jobs: ${message}`
      return Effect.andThen(Effect.logWarning(`The worker ${why}`), Effect.sleep(again_ms))
    }),
    Effect.forever,
  )
  const fiber = yield* Effect.forkScoped(again)
  return {
    ready: Effect.sync(() => why),
    shutdown: Effect.asVoid(Effect.forkDetach(Fiber.interrupt(fiber))),
  }
})
