/** A server that another process started as its child, and that ends with it. */
import { writeSync } from "node:fs"
import { Effect } from "effect"

/** Nobody reads what is said any more, and to say it all the same must not end the process. */
const unread = () => undefined

/**
 * Waits until standard input ends, which is when whoever started this process is gone, whatever
 * ended them; then says so to the open file `told_fd`.
 */
export const parentGone = (name: string, told_fd: number) =>
  Effect.callback<void>((resume) => {
    for (const stream of [process.stdout, process.stderr]) stream.on("error", unread)
    const gone = () => {
      try {
        writeSync(told_fd, `${name}: who started this server is gone, and so it ends\n`)
      } catch {
        // That file went with them.
      }
      resume(Effect.void)
    }
    process.stdin.once("close", gone).resume()
    return Effect.sync(() => process.stdin.off("close", gone).destroy())
  })
