/** Commands on the log itself need exclusive access. */
import { Effect } from "effect"
import { instance } from "#cli/instance.ts"
import type { Settings } from "#schemas/settings.ts"

/** Why another process may write to the log; undefined if none can. */
export const inUseReason = Effect.fnUntraced(function* (configured: Settings) {
  if (configured.nats.url !== "") {
    return "The log is on an external server (nats.url), where other processes may write to it."
  }
  const running = yield* instance(configured)
  if (running !== undefined) return `Process ${running.pid} uses this data folder: stop it first.`
  return undefined
})
