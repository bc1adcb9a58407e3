/**
 * The role `agent` in a process that conducts nothing: it is a worker itself, as `almanac agent`
 * is. Where the conductor is, this role means the machines that it boots here (`outside.ts`).
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

/** Pause before a worker that was dismissed, or refused, comes again as a new one, in ms. */
const again_ms = 5_000

/**
 * Works in the background for as long as the scope lives. Answers why it does not, undefined while
 * it does, and a word to it that it is time to go, which answers before it has.
 */
export const worker = Effect.fnUntraced(function* (settings: Settings, sources: SettingsSources) {
  const { servers } = yield* NatsServer
  let why: string | undefined
  const once = Effect.gen(function* () {
    const worker_id = WorkerId.make(v7())
    const papers = {
      worker_id,
      project_id: yield* workerProject(settings),
      domain_id: null,
      image_version: default_image,
      nats: { servers, seed: null },
      sources,
    }
    why = undefined
    return yield* Effect.annotateLogs(runAgent(papers, settings), { worker_id })
  })
  const again = once.pipe(
    // Else it would be no worker any more while the process says that it is.
    Effect.catchDefect((defect) =>
      Effect.andThen(
        Effect.logError("The worker failed.", defect),
        Effect.fail({ message: "it failed; the log says why" }),
      ),
    ),
    Effect.catch(({ message }) => {
      why = `does not work: ${message}`
      return Effect.andThen(Effect.logWarning(`The worker ${why}`), Effect.sleep(again_ms))
    }),
    Effect.forever,
  )
  const fiber = yield* Effect.forkScoped(again)
  return {
    ready: Effect.sync(() => why),
    farewell: Effect.asVoid(Effect.forkDetach(Fiber.interrupt(fiber))),
  }
})
