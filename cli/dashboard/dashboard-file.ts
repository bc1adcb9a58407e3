/**
 * The dashboard's file during a command, and waiting until it contains the command's changes.
 *
 * Source: decisions of document 3, dashboard storage.
 */
import { Clock, Context, Effect, Schema } from "effect"

/** Polling interval of the file's position, in milliseconds. */
const poll_ms = 5

/** Time without progress after which waiting for the file fails, in milliseconds. */
const stall_ms_max = 10_000

/** The file does not catch up with the log; the message says what to do. */
export class FileBehind extends Schema.TaggedError<FileBehind>()("FileBehind", {
  message: Schema.String,
}) {}

/** The dashboard's file during a command. */
export class DashboardFile extends Context.Service<
  DashboardFile,
  {
    readonly path: string
    /** Position of the last commit in the file; 0 if it cannot be read. */
    readonly position: Effect.Effect<number>
  }
>()("cli/DashboardFile") {}

/** Waits until the file contains the commit at `position`, as long as it makes progress. */
export const waitForFile = Effect.fnUntraced(function* (position: number, stall_ms = stall_ms_max) {
  const file = yield* DashboardFile
  let reached = yield* file.position
  let since = yield* Clock.currentTimeMillis
  while (reached < position) {
    yield* Effect.sleep(poll_ms)
    const next = yield* file.position
    const now = yield* Clock.currentTimeMillis
    if (next !== reached) since = now
    reached = next
    if (now - since > stall_ms) {
      const message =
        `Everything is stored, but ${file.path} is behind the log: check that the running server ` +
        "serves capital-pressure, and check its log."
      return yield* new FileBehind({ message })
    }
  }
})
