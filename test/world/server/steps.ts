/** Steps of work that a child does: the process is killed after the one that a test names. */
import { Effect } from "effect"

export const newSteps = (killed_after: number) => {
  let seen = 0
  return {
    /** Done after each step. */
    after: () =>
      Effect.sync(() => {
        if (++seen === killed_after) process.kill(process.pid, "SIGKILL")
      }),
    /** Says how many there were: the test kills after each of them in turn. */
    tell: () => process.stdout.write(`steps ${seen}\n`),
  }
}
