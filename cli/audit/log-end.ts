/** Rejects positions and times that the log has not reached yet. */
import { Clock, Effect, Schema } from "effect"
import type { Instance } from "#adapters/data-folder/instance-file.ts"
import { CannotRun } from "#cli/audit/outcome.ts"
import { callInstance } from "#cli/instance.ts"
import { Log } from "#events/log.ts"
import type { Settings } from "#schemas/settings.ts"
import { futureText, LogFigures, unreachedText } from "#schemas/system/audit.ts"

const Figures = Schema.fromJsonString(LogFigures)

/** The last position of the log, read from the log itself. */
export const lastPosition = Effect.flatMap(Log, (log) => log.head(""))

/** Fails if the log, which ends at `last`, has not reached `position` yet. */
export const requireReached = (position: number | undefined, last: number) => {
  if (position === undefined || position <= last) return Effect.void
  return Effect.fail(new CannotRun({ message: unreachedText(position, last) }))
}

/** The last position of the log, reported by the instance that writes it. */
export const lastPositionOf = Effect.fnUntraced(function* (running: Instance, of: Settings) {
  const text = yield* callInstance(running, of, "GET", "/v1/admin/log")
  const { position } = yield* Schema.decodeEffect(Figures)(text)
  return position
})

/** Fails if the time of this flag, in epoch milliseconds, is in the future. */
export const requirePast = Effect.fnUntraced(function* (flag: string, at: number | undefined) {
  const now = yield* Clock.currentTimeMillis
  if (at === undefined || at <= now) return
  return yield* new CannotRun({ message: `${flag} ${futureText(at, now)}` })
})
