/**
 * Starts of the server in large numbers, on folders in different states and on busy cores: does one
 * of them ever end by a signal, or with an exit code other than 0?
 */
import { type ChildProcess, spawn } from "node:child_process"
import { readdirSync, renameSync, rmSync } from "node:fs"
import { availableParallelism, loadavg } from "node:os"
import { join } from "node:path"
import { setTimeout as pause } from "node:timers/promises"
import { type Seeded, seeded } from "../../world/seeded.ts"
import { keep, newFolder, startServer } from "../../world/server/server.ts"

/** What the folder of a start is like. */
const states = ["as it was left", "without read models", "older read models", "new"] as const
/** How a start ends: stopped, stopped at once, or killed so that the next one has to recover. */
const ends = ["stopped", "stopped at once", "killed"] as const
/** Milliseconds after which a server that is not stopped at once is. */
const pause_ms_max = 1_500
/** A start on busy cores. */
const ready_ms_max = 180_000
/** Starts on one folder before it is replaced. */
const starts_per_folder = 12

export interface StartRound {
  readonly state: (typeof states)[number]
  readonly end: (typeof ends)[number]
  readonly ready_ms: number
  /** What went wrong, with what the server said; undefined where nothing did. */
  readonly fault: string | undefined
}

export interface StartLoop {
  readonly seed: number
  readonly rounds: number
  /** Starts at the same moment, each on a folder of its own. */
  readonly together?: number
  readonly onRound: (round: StartRound) => void
}

/** A release with older tables left these: the new ones are built beside them. */
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
    const said = fault && `${fault}:\n${server.printed.stderr}`
    return { ...none, ready_ms, fault: said }
  } catch (cause) {
    return { ...none, fault: String(cause) }
  }
}

/** Processes that keep every core busy, unless others do. */
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

/** Starts the server that many times; answers the rounds that went wrong. */
export const startLoop = async ({ seed, rounds, together = 2, onRound }: StartLoop) => {
  const faults: Array<StartRound> = []
  let begun = 0
  const told = (round: StartRound) => {
    if (round.fault !== undefined) faults.push(round)
    onRound(round)
  }
  const load = burners()
  try {
    const next = () => begun++ < rounds
    await Promise.all(
      Array.from({ length: together }, (_, n) => one(seeded(seed + n), { next, onRound: told })),
    )
  } finally {
    for (const burner of load) burner.kill("SIGKILL")
  }
  return faults
}
