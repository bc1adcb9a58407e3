/**
 * One volume through several lives, each ended by power loss, a kill or a shutdown, with faults on
 * the way. After each it is reopened and must know everything that it acknowledged.
 *
 * A seed determines everything.
 */
import assert from "node:assert/strict"
import { setImmediate as nextTurn } from "node:timers/promises"
import type { BlobFault } from "#actors/blob-storage/ports/fault.ts"
import { type Seeded, seeded } from "../../../../test/world/seeded.ts"
import { type SimulatedDisk, simulateDisk } from "../simulated/disk.ts"
import { check } from "./checks.ts"
import { contents, segment_bytes } from "./contents.ts"
import type { CrashEngine, Life } from "./life.ts"
import { type Model, makeModel } from "./model.ts"
import { put, work } from "./work.ts"

/** Opens the volume on a disk. `at` is in Unix nanoseconds. */
export type Open = (disk: SimulatedDisk["disk"], seed: number) => Promise<CrashEngine>

export interface Outcome {
  readonly seed: number
  /** Number of power losses, kills and failed steps. */
  readonly points: number
  /** How often each event happened: ends by kind, and refusals. */
  readonly tally: ReadonlyMap<string, number>
  readonly broken: { readonly cause: unknown; readonly story: ReadonlyArray<string> } | undefined
}

const lives_min = 4
const lives_max = 10
const operations_max = 80
const writers_max = 12
const notes_printed_max = 60
/** A volume on a full disk queries the free space only now and then. */
const room_tries_max = 3
/** A log file is reserved for them, with space for thirty batches. */
const deletes_min = 20
const begin_ns = 1_800_000_000_000_000_000n
/** Maximum number of files of an idle volume, beyond those that hold its blobs. */
const idle_segments_max = 16

const endings = [
  "power",
  "power",
  "power",
  "power",
  "kill",
  "kill",
  "clean",
  "full",
  "error",
] as const
export type Ending = (typeof endings)[number]

export interface Run {
  readonly seed: number
  readonly random: Seeded
  readonly model: Model
  readonly open: Open
  readonly notes: Array<string>
  readonly tally: Map<string, number>
  time: bigint
  is_damaged: boolean
  points: number
}

const count = ({ tally }: Run, what: string) => tally.set(what, (tally.get(what) ?? 0) + 1)

const excuses_of: Readonly<Record<Ending, ReadonlyArray<BlobFault["_tag"]>>> = {
  power: [],
  kill: [],
  clean: [],
  full: ["BlobCapacityExceeded"],
  error: ["BlobStoreReadOnly", "BlobStoreFailed"],
}

export const lifeOf = (
  run: Run,
  engine: CrashEngine,
  ending: Ending,
  isOver: () => boolean,
): Life => {
  const { random, model, notes } = run
  return {
    random,
    engine,
    model,
    isOver,
    isDamaged: () => run.is_damaged,
    excuses: new Set(excuses_of[ending]),
    reserve: { deletes: 0 },
    at: () => {
      run.time += BigInt(random.pick([0, 0, 1, 1000, 5_000_000, -2000]))
      return run.time
    },
    note: (line) => void notes.push(line),
  }
}

/** A future step, most likely one of the next: opening takes only a few. */
export const soon = (random: Seeded) => Math.ceil(2 ** (random.next() * 8))

const planned = (random: Seeded, simulated: SimulatedDisk, ending: Ending) => {
  if (ending === "power" || ending === "kill") {
    const moment = random.pick<"before" | "within" | "after">(["before", "within", "after"])
    simulated.plan(soon(random), { kind: ending, moment })
  }
  if (ending === "error") simulated.plan(soon(random), { kind: "error" })
}

/** Puts blobs until the volume notices that there is space again. */
const recover = async (life: Life) => {
  const [first, ...others] = life.model.entries().filter((entry) => !entry.states().has("stored"))
  if (first === undefined) return
  for (let tries = 0; tries < room_tries_max; tries++) {
    if (await put(life, life.random.pick([first, ...others]))) return
  }
  assert.fail("the volume takes no puts though there is room again")
}

/** Fills the disk for a while: deletes continue, and puts do too once there is space. */
const workWhileFull = async (life: Life, simulated: SimulatedDisk, writers: number) => {
  const { random } = life
  simulated.limit(simulated.usedBytes() + random.between(0, 3 * segment_bytes))
  life.note("full")
  life.reserve.deletes = deletes_min
  await work(life, writers, operations_max)
  simulated.limit(Number.POSITIVE_INFINITY)
  await recover(life)
  await work({ ...life, excuses: new Set() }, writers, operations_max / 4)
}

const live = async (run: Run, simulated: SimulatedDisk, ending: Ending, isOver: () => boolean) => {
  const { random } = run
  const engine = await run.open(simulated.disk, random.between(1, 2 ** 31))
  const life = lifeOf(run, engine, ending, isOver)
  const was_met = simulated.faults().length > 0
  if (ending === "error" && was_met) return
  await check(life)
  const writers = random.between(1, writers_max)
  if (ending === "full") await workWhileFull(life, simulated, writers)
  else await work(life, writers, random.between(1, operations_max))
  if (ending === "error") return
  if (random.next() < 1 / 3) await check(life)
  if (ending !== "clean" && random.next() < 1 / 2) return
  await engine.close()
  assert.equal(simulated.openFiles(), 0, "a file was left open")
  run.notes.push("shut")
}

/** Runs one life. Returns the violation, if any. */
export const liveOnce = async (
  run: Run,
  simulated: SimulatedDisk,
  ending: Ending,
): Promise<unknown> => {
  let is_over = false
  let broken: unknown
  const living = live(run, simulated, ending, () => is_over).catch((cause: unknown) => {
    // Only opening and closing may fail, if their disk does.
    const is_excused = ending === "error" && cause instanceof Error && !isLaw(cause)
    if (!is_excused || simulated.faults().length === 0) broken = cause
  })
  // Responses from before the end still count.
  const ended = simulated.end.then(() => nextTurn()).then(() => nextTurn())
  await Promise.race([living, ended])
  is_over = true
  if (ending === "full" || ending === "error" || ending === "clean") simulated.stop("power")
  else simulated.stop(ending)
  await simulated.end
  run.points += Math.max(1, simulated.faults().length)
  count(run, ending)
  for (const line of simulated.faults()) run.notes.push(line)
  run.notes.push(`-- ${ending}`)
  run.model.end()
  return broken
}

const isLaw = (cause: unknown) => cause instanceof assert.AssertionError

/** Asserts that an idle volume has nothing but stored blobs and a few files. */
const rest = async (run: Run, simulated: SimulatedDisk) => {
  const engine = await run.open(simulated.disk, run.random.between(1, 2 ** 31))
  const life = lifeOf(run, engine, "clean", () => false)
  await check(life)
  for (let times = 0; times < 3; times++) await engine.compact()
  await engine.scrub()
  await check(life)
  const { payload_bytes: stored } = await engine.usage()
  await engine.close()
  assert.equal(simulated.openFiles(), 0, "a file was left open")
  const bytes_max = idle_segments_max * segment_bytes + 4 * stored + contents.length * 8192
  const held = `${simulated.usedBytes()} bytes on disk for ${stored} stored`
  assert(simulated.usedBytes() <= bytes_max, held)
}

export const makeRun = (seed: number, open: Open): Run => ({
  seed,
  random: seeded(seed),
  open,
  model: makeModel(),
  notes: [],
  tally: new Map(),
  time: begin_ns,
  points: 0,
  is_damaged: false,
})

export const outcomeOf = ({ seed, points, tally, notes }: Run, cause: unknown): Outcome => {
  const story = notes.slice(-notes_printed_max)
  return { seed, points, tally, broken: cause === undefined ? undefined : { cause, story } }
}

/** Runs the lives of a seed. Never rejects: a violation is returned. */
export const crash = async (seed: number, open: Open): Promise<Outcome> => {
  const run = makeRun(seed, open)
  const { random } = run
  let simulated = simulateDisk(random)
  let broken: unknown
  for (let left = random.between(lives_min, lives_max); left > 0 && !broken; left--) {
    const ending = random.pick<Ending>(endings)
    planned(random, simulated, ending)
    broken = await liveOnce(run, simulated, ending)
    simulated = simulated.after()
  }
  if (!broken) {
    await rest(run, simulated).catch((cause: unknown) => {
      broken = cause
    })
  }
  return outcomeOf(run, broken)
}

/** A readable report of a violation, with everything needed to reproduce it. */
export const brokenReport = ({ seed, broken }: Outcome) => {
  if (!broken) return `seed ${seed}: nothing was broken`
  const { cause, story } = broken
  const why = cause instanceof Error ? (cause.stack ?? cause.message) : String(cause)
  return `seed ${seed}: ${why}\n${story.join("\n")}`
}
