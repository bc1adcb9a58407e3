/**
 * A volume with files damaged on disk: damaged blobs are never served with wrong bytes, and nothing
 * else is affected.
 */
import assert from "node:assert/strict"
import type { BlobId } from "#schemas/blob-storage/blob.ts"
import { isAbsence } from "../../reads/reads.ts"
import { type Astray, type SimulatedDisk, simulateDisk } from "../simulated/disk.ts"
import { check } from "./checks.ts"
import { segment_bytes } from "./contents.ts"
import {
  lifeOf,
  liveOnce,
  makeRun,
  type Open,
  type Outcome,
  outcomeOf,
  type Run,
  soon,
} from "./crash.ts"
import type { Life } from "./life.ts"
import {
  deletesIn,
  hasUnknownLog,
  headsIn,
  hurtBy,
  recordsWritten,
  type Span,
  stretchesIn,
} from "./log.ts"
import type { Entry } from "./model.ts"
import { bytesRead, work } from "./work.ts"

const lives_max = 4
const operations = 60
const writers = 4
const flips_max = 3
/** Limit of a scan of the whole journal. */
const facts_max = 1000
/** Minimum number of flips that hit a delete if there is one, and that hit a blob's head. */
const deletes_share = 1 / 4
const heads_share = 1 / 4

/**
 * Flips bits in one place, and informs the model of the affected blobs. Returns those that are
 * certainly stored, and must be reported if they are missing: none after the first damage, or at
 * the end of the log, which looks like a torn one.
 */
const flip = (run: Run, simulated: SimulatedDisk): ReadonlyArray<Entry> => {
  const { random, model } = run
  const is_first = !run.is_damaged
  run.is_damaged = true
  const [first, ...others] = targetsIn(random, simulated)
  if (first === undefined) return []
  const { path, start, end } = random.pick<Span>([first, ...others])
  const bytes = simulated.bytes(path)
  const at = random.between(start, Math.min(end, bytes.length) - 1)
  const { ids, is_end, touched } = hurtBy(simulated, { path, start: at, end: at + 1 })
  const stored = is_first && !is_end ? model.entries().filter(isStored) : []
  if (hasUnknownLog(simulated)) {
    for (const entry of model.entries()) entry.suspect(is_first)
    model.recorded.cut()
  }
  for (const id of touched) model.recorded.suspect(id)
  if (is_end) model.recorded.cut()
  for (const id of ids) {
    run.notes.push(`hurt ${id.slice(0, 8)}`)
    model.entry(id).suspect(is_first && !is_end)
  }
  run.notes.push(`flip a bit of ${path} at ${at} (${start} to ${end})`)
  const byte = bytes[at] ?? 0
  simulated.damage(path, Uint8Array.of(byte ^ (1 << random.between(0, 7))), at)
  return stored
}

/** Spans of which one is hit. */
const targetsIn = (random: Run["random"], simulated: SimulatedDisk) => {
  const drawn = random.next()
  const deletes = drawn < deletes_share ? deletesIn(simulated) : []
  const heads = drawn > 1 - heads_share ? headsIn(simulated) : []
  const wanted = [...deletes, ...heads]
  return wanted.length > 0 ? wanted : stretchesIn(simulated)
}

const isStored = (entry: Entry) => {
  const states = entry.states()
  return states.size === 1 && states.has("stored")
}

const isThere = async ({ engine, at }: Life, { content }: Entry) => {
  try {
    await bytesRead(engine, content.id, {}, at(), content.shard)
    return true
  } catch (cause) {
    if (isAbsence(cause)) return false
    throw cause
  }
}

/** Everything stored that is gone was reported exactly once. */
const checkReports = async (life: Life, stored: ReadonlyArray<Entry>) => {
  const gone: Array<BlobId> = []
  for (const entry of stored) if (!(await isThere(life, entry))) gone.push(entry.content.id)
  const facts = await life.engine.scan(0, facts_max)
  const ids = new Set(stored.map(({ content }) => content.id))
  const touched = facts
    .filter(({ kind, id }) => (kind === "quarantined" || kind === "lost") && ids.has(id))
    .map(({ id }) => id)
  assert.deepEqual(touched.sort(), gone.sort(), "a blob disappeared silently")
}

/** Informs the model of the blobs that a misdirected write affects, at both positions. */
const strayed = (run: Run, simulated: SimulatedDisk, { path, position, to, bytes }: Astray) => {
  const { model, notes } = run
  const is_first = !run.is_damaged
  run.is_damaged = true
  notes.push(`${bytes.length} bytes for ${position} of ${path} are written to ${to}`)
  if (!simulated.paths().includes(path) || !path.endsWith(".seg")) return
  const { ids, is_end } = hurtBy(simulated, { path, start: to, end: to + bytes.length })
  const is_unknown = hasUnknownLog(simulated)
  const suspects = new Set([...ids, ...recordsWritten(simulated, path, bytes, position)])
  for (const entry of model.entries()) {
    // The owner of the bytes of a write to an extent file is unknown.
    const is_large = path.includes("ext-") && entry.content.bytes.length >= segment_bytes / 8
    if (is_unknown || is_large || entry.isFlying() || suspects.has(entry.content.id)) {
      entry.suspect(is_first && !is_end)
    }
  }
  model.recorded.cut()
}

/** Opens the damaged volume, checks it, uses it, and checks it again. */
const liveDamaged = async (run: Run, simulated: SimulatedDisk, stored: ReadonlyArray<Entry>) => {
  const { random } = run
  const engine = await run.open(simulated.disk, random.between(1, 2 ** 31))
  const life = lifeOf(run, engine, "clean", () => false)
  if (stored.length > 0 && random.next() < 1 / 2) await checkReports(life, stored)
  if (random.next() < 1 / 2) await check(life)
  await work(life, writers, random.between(0, operations))
  await check(life)
  if (random.next() < 1 / 2) await engine.scrub()
  if (random.next() < 1 / 2) await engine.compact()
  await check(life)
  if (random.next() < 1 / 2) await engine.close()
}

/** Runs the lives of a seed, with damage. Never rejects: a violation is returned. */
export const crashDamaged = async (seed: number, open: Open): Promise<Outcome> => {
  const run = makeRun(seed, open)
  const { random, model, notes } = run
  let simulated = simulateDisk(random)
  let broken: unknown
  for (let left = random.between(1, lives_max); left > 0 && !broken; left--) {
    const disk = simulated
    disk.onAstray((write) => strayed(run, disk, write))
    if (random.next() < 1 / 3) disk.plan(soon(random), { kind: "misdirected" })
    broken = await liveOnce(run, disk, random.pick(["power", "kill", "clean"]))
    simulated = disk.after()
  }
  for (let flips = random.between(0, flips_max); flips > 0 && !broken; flips--) {
    const stored = flip(run, simulated)
    run.points++
    await liveDamaged(run, simulated, stored).catch((cause: unknown) => {
      broken = cause
    })
    simulated.stop("power")
    model.end()
    notes.push("-- damaged")
    simulated = simulated.after()
  }
  return outcomeOf(run, broken)
}
