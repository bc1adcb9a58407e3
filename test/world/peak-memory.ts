/** The peak memory of a process that a test starts. */
import { readFileSync } from "node:fs"

/**
 * Peak resident memory of this process in bytes. Does not use `maxRSS`, which on Linux a child
 * process inherits from the process that forked it.
 */
export const peakMemory = () => {
  if (process.platform !== "linux") return process.resourceUsage().maxRSS * 1024
  const status = readFileSync("/proc/self/status", "utf8")
  return Number(/^VmHWM:\s+(\d+) kB$/m.exec(status)?.[1]) * 1024
}
