/** What is done to the log itself is done while nothing else uses it. */
import { Effect } from "effect"
import { instance } from "#cli/instance.ts"
import type { Settings } from "#schemas/settings.ts"

/** Why the log cannot be worked on now; undefined where nothing else can write to it. */
export const whyNotAlone = Effect.fnUntraced(function* (configured: Settings) {
  if (configured.nats.url !== "") {
    return "The log is on a server of its own (nats.url), where others may write to it."
  }
  const running = yield* instance(configured)
  if (running !== undefined) return `Process ${running.pid} runs on this folder: stop it first.`
  return undefined
})
