/** Lowers the priority of a background thread. */
import { readlinkSync } from "node:fs"
import { constants, getPriority, setPriority } from "node:os"

/** Link to the calling thread in the kernel's process list: `<process>/task/<thread>`. */
const own_name = "/proc/thread-self"

/**
 * Lowers the priority of the calling thread and of those that it starts afterwards, so that the
 * event loop gets a core even if all are busy. Only Linux has priorities per thread; elsewhere, or
 * without permission, it does nothing.
 */
export const yieldToOthers = (): void => {
  try {
    const thread = Number(readlinkSync(own_name).split("/").at(-1))
    const polite = Math.max(getPriority(thread), constants.priority.PRIORITY_BELOW_NORMAL)
    if (thread > 0) setPriority(thread, polite)
  } catch {
    // The thread works without it too.
  }
}
