/** Steps of a child process: the process is killed after the step that a test specifies. */
import { Effect } from "effect"

export const newSteps = (killed_after: number) => {
  let seen = 0
  return {
    /** Call this after each step. */
    after: () =>
      Effect.sync(() => {
        if (++seen === killed_after) process.kill(process.pid, "SIGKILL")
      }),
    /** Prints the number of steps: the test kills after each of them in turn. */
    tell: () => process.stdout.write(`steps ${seen}\n`),
  }
}
