/** A thread that works in the background of its process. */
import { readlinkSync } from "node:fs"
import { constants, getPriority, setPriority } from "node:os"

/** The kernel's name of the thread that reads it: `<process>/task/<thread>`. */
const own_name = "/proc/thread-self"

/**
 * The thread that calls it, and those that it starts from then on, get a core only where the rest
 * of the process leaves one: so the event loop answers while all cores work. Linux alone knows a
 * thread's priority; elsewhere, and where it is forbidden, nothing changes.
 */
export const yieldToOthers = (): void => {
  try {
    const thread = Number(readlinkSync(own_name).split("/").at(-1))
    const polite = Math.max(getPriority(thread), constants.priority.PRIORITY_BELOW_NORMAL)
    if (thread > 0) setPriority(thread, polite)
  } catch {
    // It works as well without, only less politely.
  }
}
