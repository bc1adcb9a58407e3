/** The processes of a server: their ids, the core they run on, and their CPU time. */
import { spawnSync } from "node:child_process"
import { readdirSync, readFileSync } from "node:fs"
import { stat } from "node:fs/promises"
import { availableParallelism } from "node:os"
import { setTimeout as pause } from "node:timers/promises"

const is_taskset_here = !spawnSync("taskset", ["--version"]).error

/** Servers run on the first core, the load client on the last. */
export const server_core = 0
export const client_core = availableParallelism() - 1

/** Pins all threads of these processes, and their future children, to one core. */
export const pin = (pids: ReadonlyArray<number>, core: number): void => {
  if (!is_taskset_here) return
  for (const pid of pids) spawnSync("taskset", ["-a", "-c", "-p", String(core), String(pid)])
}

const read = (path: string) => {
  try {
    return readFileSync(path, "utf8")
  } catch {
    // The process has ended.
    return ""
  }
}

/** The fields of a process's or thread's `stat` after the name, starting with the state. */
const fieldsIn = (path: string) => read(`${path}/stat`).split(") ").at(-1)?.split(" ") ?? []
const fieldsOf = (pid: number) => fieldsIn(`/proc/${pid}`)

/** All descendants of `root`, without itself. */
export const descendants = (root: number): ReadonlyArray<number> => {
  const parents = readdirSync("/proc")
    .map(Number)
    .filter((pid) => pid > 0)
    .map((pid) => [pid, Number(fieldsOf(pid)[1])] as const)
  const below = (parent: number): Array<number> =>
    parents.filter(([, of]) => of === parent).flatMap(([pid]) => [pid, ...below(pid)])
  return below(root)
}

/** The kernel's clock ticks per second, as reported to programs: always 100. */
const ticks_per_s = 100

/** User and system time in seconds of the process or thread at this path of /proc. */
const usedAt = (path: string): number => {
  const fields = fieldsIn(path)
  return (Number(fields[11] ?? 0) + Number(fields[12] ?? 0)) / ticks_per_s
}

/** The same for these processes, with all their threads. */
export const usedSeconds = (pids: ReadonlyArray<number>): number =>
  pids.reduce((total, pid) => total + usedAt(`/proc/${pid}`), 0)

/** For a server that finishes a round in the background: the polling interval, and the timeout. */
const look_ms = 100
const rest_ms_max = 10_000
/** At most one tick of CPU time per interval counts as idle. */
const rest_s = 0.015

/**
 * Milliseconds for which a node may be idle after responding to its puts, before it continues with
 * them: its journal pauses for at most a second, and its event index batches for half a second.
 */
export const pause_ms_max = 1500

/**
 * Waits until these processes are nearly idle: at least `begin_ms`, then at most `rest_ms_max`
 * more.
 */
export const rested = async (pids: () => ReadonlyArray<number>, begin_ms = 0): Promise<void> => {
  await pause(begin_ms)
  const late = performance.now() + rest_ms_max
  for (let busy_s = 1; busy_s > rest_s && performance.now() < late; ) {
    const before = usedSeconds(pids())
    await pause(look_ms)
    busy_s = usedSeconds(pids()) - before
  }
}

/** Returns a counter of cache flushes of the disk under `folder`; undefined if unknown. */
export const flushesOf = async (folder: string): Promise<() => number | undefined> => {
  const { dev } = await stat(folder)
  // A device number in the kernel's encoding.
  const [major, minor] = [(dev >> 8) & 0xfff, (dev & 0xff) | ((dev >> 12) & 0xfff00)]
  return () => {
    // The 16th field of a block device's statistics.
    const count = Number(read(`/sys/dev/block/${major}:${minor}/stat`).trim().split(/\s+/)[15])
    return Number.isFinite(count) ? count : undefined
  }
}
