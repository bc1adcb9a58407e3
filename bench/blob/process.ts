/** The processes of a server: which they are, on which core they run, and what they have used. */
import { spawnSync } from "node:child_process"
import { readdirSync, readFileSync } from "node:fs"
import { stat } from "node:fs/promises"
import { availableParallelism } from "node:os"
import { setTimeout as pause } from "node:timers/promises"

const is_taskset_here = !spawnSync("taskset", ["--version"]).error

/** Servers run on the first core, the load client on the last. */
export const server_core = 0
export const client_core = availableParallelism() - 1

/** Binds all threads of these processes, and what they start from now on, to one core. */
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

/** The fields of a process's or a thread's `stat` behind the name, from the state on. */
const fieldsIn = (path: string) => read(`${path}/stat`).split(") ").at(-1)?.split(" ") ?? []
const fieldsOf = (pid: number) => fieldsIn(`/proc/${pid}`)

/** All processes below this one, which is not among them. */
export const descendants = (root: number): ReadonlyArray<number> => {
  const parents = readdirSync("/proc")
    .map(Number)
    .filter((pid) => pid > 0)
    .map((pid) => [pid, Number(fieldsOf(pid)[1])] as const)
  const below = (parent: number): Array<number> =>
    parents.filter(([, of]) => of === parent).flatMap(([pid]) => [pid, ...below(pid)])
  return below(root)
}

/** The kernel's clock ticks per second as it tells them to programs: always 100. */
const ticks_per_s = 100

/** Seconds of user and system time that what is at this path of /proc has used until now. */
const usedAt = (path: string): number => {
  const fields = fieldsIn(path)
  return (Number(fields[11] ?? 0) + Number(fields[12] ?? 0)) / ticks_per_s
}

/** The same of these processes, all threads. */
export const usedSeconds = (pids: ReadonlyArray<number>): number =>
  pids.reduce((total, pid) => total + usedAt(`/proc/${pid}`), 0)

/** Of a server that does in the background what is left of a round: looked at so often, so long. */
const look_ms = 100
const rest_ms_max = 10_000
/** One tick and less in such a time is rest. */
const rest_s = 0.015

/**
 * Behind the answers of its puts a node may be at rest for so long, in milliseconds, before it goes
 * on with them: its journal pauses a second at most, and its index of events gathers half of one.
 */
export const pause_ms_max = 1500

/** Waits until these have next to nothing to do, not before `begin_ms`; so long more at most. */
export const rested = async (pids: () => ReadonlyArray<number>, begin_ms = 0): Promise<void> => {
  await pause(begin_ms)
  const late = performance.now() + rest_ms_max
  for (let busy_s = 1; busy_s > rest_s && performance.now() < late; ) {
    const before = usedSeconds(pids())
    await pause(look_ms)
    busy_s = usedSeconds(pids()) - before
  }
}

/** Reads how often the disk under `folder` was told to flush its cache; undefined: unknown. */
export const flushesOf = async (folder: string): Promise<() => number | undefined> => {
  const { dev } = await stat(folder)
  // As the kernel packs a device's numbers.
  const [major, minor] = [(dev >> 8) & 0xfff, (dev & 0xff) | ((dev >> 12) & 0xfff00)]
  return () => {
    // The 16th field of a block device's statistics.
    const count = Number(read(`/sys/dev/block/${major}:${minor}/stat`).trim().split(/\s+/)[15])
    return Number.isFinite(count) ? count : undefined
  }
}
