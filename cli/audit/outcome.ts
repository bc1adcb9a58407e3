/** How an audit verb ends where it does not end well. */
import { Runtime, Schema } from "effect"

/** The log has faults, which were printed: exit code 1. */
export class LogFaulty extends Schema.TaggedError<LogFaulty>()("LogFaulty", {
  message: Schema.String,
}) {
  override readonly [Runtime.errorExitCode] = 1
}

/** The verb could not do its work, and so says nothing about the log: exit code 2. */
export class CannotRun extends Schema.TaggedError<CannotRun>()("CannotRun", {
  message: Schema.String,
}) {
  override readonly [Runtime.errorExitCode] = 2
}
