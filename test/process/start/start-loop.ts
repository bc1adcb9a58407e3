/**
 * Starts the server many times, on folders in different states and on busy cores, and checks that
 * no start ends with a signal or a nonzero exit code.
 */
import { type ChildProcess, spawn } from "node:child_process"
import { readdirSync, renameSync, rmSync } from "node:fs"
import { availableParallelism, loadavg } from "node:os"
import { join } from "node:path"
import { setTimeout as pause } from "node:timers/promises"
import { type Seeded, seeded } from "../../world/seeded.ts"
import { keep, newFolder, startServer } from "../../world/server/server.ts"

/** The state of the folder before a start. */
const states = ["as it was left", "without read models", "older read models", "new"] as const
/** How a start ends: stopped, stopped at once, or killed so that the next one must recover. */
const ends = ["stopped", "stopped at once", "killed"] as const
/** Maximum delay before a stop that is not immediate, in milliseconds. */
const pause_ms_max = 1_500
/** Maximum time of a start on busy cores. */
const ready_ms_max = 180_000
/** Starts on one folder before it is replaced. */
const starts_per_folder = 12

export interface StartRound {
  readonly state: (typeof states)[number]
  readonly end: (typeof ends)[number]
  readonly ready_ms: number
  /** The failure, with the server's output; undefined if there was none. */
  readonly fault: string | undefined
}

export interface StartLoop {
  readonly seed: number
  readonly rounds: number
  /** Concurrent starts, each on its own folder. */
  readonly together?: number
  readonly onRound: (round: StartRound) => void
}

/** Renames the files as an older release named them; the new ones are built next to them. */
const makeOlder = (data_dir: string) => {
  const folder = join(data_dir, "read-models")
  for (const name of readdirSync(folder)) {
    const [, service, version, rest] = /^([a-z-]+)\.v(\d+)(\.sqlite.*)$/.exec(name) ?? []
    if (version === undefined) continue
    renameSync(join(folder, name), join(folder, `${service}.v${Number(version) - 1}${rest}`))
  }
}

const prepare = (data_dir: string, state: StartRound["state"]) => {
  if (state === "older read models") makeOlder(data_dir)
  if (state === "without read models") {
    rmSync(join(data_dir, "read-models"), { recursive: true, force: true })
  }
}

/** One start and its end. */
const once = async (data_dir: string, random: Seeded, state: StartRound["state"]) => {
  const end = ends[random.between(0, ends.length - 1)] ?? "stopped"
  prepare(data_dir, state)
  const none = { state, end, ready_ms: 0 }
  try {
    const server = await startServer(data_dir, {}, ready_ms_max)
    const { ready_ms } = server
    if (end !== "stopped at once") await pause(random.between(0, pause_ms_max))
    if (end === "killed") {
      await server.killAll()
      return { ...none, ready_ms, fault: undefined }
    }
    const { code, signal } = await server.stop()
    const fault = code === 0 ? undefined : `ended by ${signal ?? `code ${code}`}`
    const message = fault && `${fault}:\n${server.printed.stderr}`
    return { ...none, ready_ms, fault: message }
  } catch (cause) {
    return { ...none, fault: String(cause) }
  }
}

/** Processes that keep every core busy, unless the machine is already busy. */
const burners = (): ReadonlyArray<ChildProcess> => {
  const cores = availableParallelism()
  if ((loadavg()[0] ?? 0) > cores) return []
  const burn = () => spawn(process.execPath, ["-e", "for (;;);"], { stdio: "ignore" })
  return Array.from({ length: cores }, burn)
}

const one = async (random: Seeded, { next, onRound }: { next: () => boolean } & Told) => {
  let data_dir = newFolder()
  let left = 0
  while (next()) {
    const is_new = left-- === 0
    if (is_new) {
      data_dir = newFolder()
      left = starts_per_folder
    }
    const state = is_new ? "new" : (states[random.between(0, states.length - 2)] ?? "new")
    const round = await once(data_dir, random, state)
    if (round.fault !== undefined) keep(data_dir)
    onRound(round)
  }
}

type Told = Pick<StartLoop, "onRound">

/** Starts the server that many times; returns the failed rounds. */
export const startLoop = async ({ seed, rounds, together = 2, onRound }: StartLoop) => {
  const faults: Array<StartRound> = []
  let begun = 0
  const reportRound = (round: StartRound) => {
    if (round.fault !== undefined) faults.push(round)
    onRound(round)
  }
  const load = burners()
  try {
    const next = () => begun++ < rounds
    await Promise.all(
      Array.from({ length: together }, (_, n) =>
        one(seeded(seed + n), { next, onRound: reportRound }),
      ),
    )
  } finally {
    for (const burner of load) burner.kill("SIGKILL")
  }
  return faults
}
