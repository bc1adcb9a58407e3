/** Errors and exit codes of audit commands. */
import { Runtime, Schema } from "effect"

/** The log has faults, which the command printed: exit code 1. */
export class LogFaulty extends Schema.TaggedError<LogFaulty>()("LogFaulty", {
  message: Schema.String,
}) {
  override readonly [Runtime.errorExitCode] = 1
}

/** The command failed and found out nothing about the log: exit code 2. */
export class CannotRun extends Schema.TaggedError<CannotRun>()("CannotRun", {
  message: Schema.String,
}) {
  override readonly [Runtime.errorExitCode] = 2
}
