/**
 * A volume whose files are damaged where they lie: what was hurt is never served with other bytes,
 * and nothing else is hurt with it.
 */
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
import { check } from "./crash-checks.ts"
import { segment_bytes } from "./crash-contents.ts"
import {
  deletesIn,
  hasUnknownLog,
  hurtBy,
  recordsWritten,
  type Stretch,
  stretchesIn,
} from "./crash-log.ts"
import { work } from "./crash-work.ts"
import { type Astray, type SimulatedDisk, simulateDisk } from "./simulated-disk.ts"

const lives_max = 4
const operations = 60
const writers = 4
const flips_max = 3
/** Of the flips so many, at least, hit a delete where there is one. */
const deletes_share = 1 / 4

/** Flips bits in one place, and tells the model whom that may have hurt. */
const flip = (run: Run, simulated: SimulatedDisk) => {
  const { random, model } = run
  const is_first = !run.is_damaged
  run.is_damaged = true
  const deletes = random.next() < deletes_share ? deletesIn(simulated) : []
  const [first, ...others] = deletes.length > 0 ? deletes : stretchesIn(simulated)
  if (first === undefined) return
  const { path, start, end } = random.pick<Stretch>([first, ...others])
  const bytes = simulated.bytes(path)
  const at = random.between(start, Math.min(end, bytes.length) - 1)
  const { ids, is_end, told } = hurtBy(simulated, { path, start: at, end: at + 1 })
  if (hasUnknownLog(simulated)) {
    for (const entry of model.entries()) entry.suspect(is_first)
    model.recorded.cut()
  }
  for (const id of told) model.recorded.suspect(id)
  if (is_end) model.recorded.cut()
  for (const id of ids) {
    run.notes.push(`hurt ${id.slice(0, 8)}`)
    model.entry(id).suspect(is_first && !is_end)
  }
  run.notes.push(`flip a bit of ${path} at ${at} (${start} to ${end})`)
  const byte = bytes[at] ?? 0
  simulated.damage(path, Uint8Array.of(byte ^ (1 << random.between(0, 7))), at)
}

/** Tells the model whom a write that lands elsewhere may hurt, there and where it is missing. */
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
    // Who knows whose bytes a write to a file of extents holds.
    const is_large = path.includes("ext-") && entry.content.bytes.length >= segment_bytes / 8
    if (is_unknown || is_large || entry.isFlying() || suspects.has(entry.content.id)) {
      entry.suspect(is_first && !is_end)
    }
  }
  model.recorded.cut()
}

/** Opens the damaged volume, looks, goes on using it, and looks again. */
const liveDamaged = async (run: Run, simulated: SimulatedDisk) => {
  const { random } = run
  const engine = await run.open(simulated.disk, random.between(1, 2 ** 31))
  const life = lifeOf(run, engine, "clean", () => false)
  if (random.next() < 1 / 2) await check(life)
  await work(life, writers, random.between(0, operations))
  await check(life)
  if (random.next() < 1 / 2) await engine.scrub()
  if (random.next() < 1 / 2) await engine.compact()
  await check(life)
  if (random.next() < 1 / 2) await engine.shut()
}

/** Lives through what the seed draws, damage among it. Never rejects: what was broken is told. */
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
    flip(run, simulated)
    run.points++
    await liveDamaged(run, simulated).catch((cause: unknown) => {
      broken = cause
    })
    simulated.stop("power")
    model.end()
    notes.push("-- damaged")
    simulated = simulated.after()
  }
  return outcomeOf(run, broken)
}
