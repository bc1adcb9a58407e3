/**
 * The dashboard's file while a verb runs, and waiting until it shows what the verb did.
 *
 * Source: decisions of document 3, dashboard storage.
 */
import { Clock, Context, Effect, Schema } from "effect"

/** Pause between two looks at how far the file is, in milliseconds. */
const look_ms = 5

/** How long the file may stand still before it is no longer waited for, in milliseconds. */
const stall_ms_max = 10_000

/** The file does not show what is in the log; the message says what to do. */
export class FileBehind extends Schema.TaggedError<FileBehind>()("FileBehind", {
  message: Schema.String,
}) {}

/** The dashboard's file while a verb runs. */
export class DashboardFile extends Context.Service<
  DashboardFile,
  {
    readonly path: string
    /** The last commit that it shows; 0 where it cannot be read. */
    readonly position: Effect.Effect<number>
  }
>()("cli/DashboardFile") {}

/** Waits until the file shows the commit at `position`, for as long as it comes nearer. */
export const fileShows = Effect.fnUntraced(function* (position: number, stall_ms = stall_ms_max) {
  const file = yield* DashboardFile
  let shown = yield* file.position
  let since = yield* Clock.currentTimeMillis
  while (shown < position) {
    yield* Effect.sleep(look_ms)
    const next = yield* file.position
    const now = yield* Clock.currentTimeMillis
    if (next !== shown) since = now
    shown = next
    if (now - since > stall_ms) {
      const message =
        `Everything is stored, but ${file.path} does not show it yet: see whether the instance ` +
        "that runs serves capital-pressure, and its log."
      return yield* new FileBehind({ message })
    }
  }
})
