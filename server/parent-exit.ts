/** A server that ends when its parent process ends. */
import { writeSync } from "node:fs"
import { Effect } from "effect"

/** After the parent's exit the output has no reader; write errors must not end the process. */
const unread = () => undefined

/**
 * Waits until standard input closes, which happens when the parent process ends for any reason, and
 * then writes a message to the open file `report_fd`.
 */
export const parentExit = (name: string, report_fd: number) =>
  Effect.callback<void>((resume) => {
    for (const stream of [process.stdout, process.stderr]) stream.on("error", unread)
    const onClose = () => {
      try {
        writeSync(report_fd, `${name}: the process that started this server has exited; stopping\n`)
      } catch {
        // The file was closed with the parent.
      }
      resume(Effect.void)
    }
    process.stdin.once("close", onClose).resume()
    return Effect.sync(() => process.stdin.off("close", onClose).destroy())
  })
