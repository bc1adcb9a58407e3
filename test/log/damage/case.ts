/**
 * A case: a copy of a master is damaged, and the log starts on it as in a server.
 *
 * Invariant: each acknowledged commit is served with its bytes, or the log is read-only and reports
 * its position as missing; and a log that lost nothing accepts commits.
 */
import { cpSync, rmSync } from "node:fs"
import { Effect, Exit, Layer, Stream } from "effect"
import { NatsConnection } from "#bus"
import { Log } from "#events/log.ts"
import { LogGuard, type Missing, mergeMissing } from "#events/log-guard.ts"
import { sha256 } from "#journal"
import { exclusive } from "#server/session.ts"
import { type Seeded, seeded } from "../../world/seeded.ts"
import { type Damage, damage_names, hurt, type Place } from "./damage.ts"
import { type Acknowledged, type Master, type Masters, settingsOf } from "./masters.ts"

/** Milliseconds to read a log of a few hundred commits; a read that stalls never ends. */
const read_ms_max = 10_000
/** Maximum number of damages in a case. */
const damages_max = 2

export interface Case {
  readonly master: keyof Masters
  readonly damages: ReadonlyArray<Damage>
}

const caseText = ({ master, damages }: Case) =>
  JSON.stringify([master, ...damages.map(({ name, seed }) => [name, seed])])

export interface Verdict {
  readonly words: ReadonlyArray<string>
  /** The number of commits that were not served. */
  readonly lost: number
  /** Violations of the invariant; empty if it held. */
  readonly faults: ReadonlyArray<string>
}

const seed_max = 2 ** 31

/** Draws a case from the seed. */
export const drawCase = (seed: number, masters: Masters): Case => {
  const random = seeded(seed)
  const [first, ...others] = Object.keys(masters) as Array<keyof Masters>
  const master = random.pick<keyof Masters>([first ?? "killed 1", ...others])
  const draw = (): Damage => {
    const name = damage_names[random.between(0, damage_names.length - 1)] ?? "flip a bit"
    return { name, seed: random.between(1, seed_max) }
  }
  return { master, damages: Array.from({ length: countOf(random) }, draw) }
}

const countOf = (random: Seeded) => random.between(1, damages_max)

/** Drops damages of a failing case as long as it still fails. */
const shrunk = Effect.fnUntraced(function* (masters: Masters, one: Case, data_dir: string) {
  let { damages } = one
  for (const damage of one.damages) {
    const fewer = damages.filter((other) => other !== damage)
    if (fewer.length === 0) break
    const { faults } = yield* runCase(masters[one.master], fewer, data_dir)
    if (faults.length > 0) damages = fewer
  }
  return { ...one, damages }
})

const isWithin = (position: number, missing: ReadonlyArray<Missing>) =>
  missing.some(({ from, to }) => from <= position && position <= to)

/** The commits and the status that the started log returns. */
interface Answer {
  readonly served: ReadonlyMap<number, Acknowledged>
  /**
   * Positions of messages that are not commits as a release writes them; these are in quarantine.
   */
  readonly unreadable: ReadonlySet<number>
  readonly is_still: boolean
  readonly trouble: string | undefined
  readonly missing: ReadonlyArray<Missing>
  /** Whether a finding reports that the log holds a different commit. */
  readonly is_other: boolean
}

const isSame = (found: Acknowledged | undefined, { stream, hash }: Acknowledged) =>
  found?.stream === stream && found.hash === hash

/** The first bytes of every commit that a release writes. */
const beginning = '{"v":1,'

const answerOf = Effect.fnUntraced(function* ({ place, acknowledged }: Master) {
  const guard = yield* LogGuard
  const log = yield* Log
  const { jsm } = yield* NatsConnection
  const served = new Map<number, Acknowledged>()
  const reading = Stream.runForEach(log.read("", 0), ({ position, stream, hash }) =>
    Effect.sync(() => served.set(position, { position, stream, hash })),
  )
  const read = yield* Effect.exit(Effect.timeoutOption(reading, read_ms_max))
  const is_still = Exit.isSuccess(read) && read.value._tag === "None"
  const findings = guard.findings()
  const missing = mergeMissing(findings.flatMap(({ missing }) => missing))
  // A reader may stop at an unreadable commit or skip it; the commits after it still exist.
  const unreadable = new Set<number>()
  for (const one of is_still ? [] : acknowledged) {
    const { position } = one
    if (isSame(served.get(position), one) || isWithin(position, missing)) continue
    const message = yield* Effect.promise(() =>
      jsm.streams.getMessage(place.stream, { seq: position }).catch(() => null),
    )
    if (message === null) continue
    const is_ours = message.string().startsWith(beginning)
    if (sha256(message.data) === one.hash && message.subject.endsWith(`.${one.stream}`)) {
      served.set(position, one)
    } else if (!is_ours) unreadable.add(position)
  }
  return {
    served,
    unreadable,
    is_still,
    trouble: guard.problem(),
    missing,
    is_other: findings.some(({ kind }) => kind === "other"),
  } satisfies Answer
})

const judge = (acknowledged: ReadonlyArray<Acknowledged>, answer: Answer) => {
  const { served, missing, trouble } = answer
  const faults: Array<string> = []
  const lost = acknowledged.filter(
    (one) => !isSame(served.get(one.position), one) && !answer.unreadable.has(one.position),
  )
  const changed = lost.filter(({ position }) => served.has(position))
  const silent = lost.filter(({ position }) => !isWithin(position, missing))
  if (changed.length > 0 && !answer.is_other) {
    faults.push(`another commit is served at ${positionsText(changed)}, and nothing says so`)
  }
  const untold = silent.filter((one) => !changed.includes(one))
  if (untold.length > 0 && !answer.is_other) {
    faults.push(`neither served nor reported: ${positionsText(untold)}`)
  }
  if (lost.length > 0 && trouble === undefined) faults.push("the log takes commits")
  if (lost.length === 0 && trouble !== undefined) faults.push(`nothing is lost: ${trouble}`)
  if (answer.is_still && trouble === undefined) faults.push("a reader is stuck")
  return { lost: lost.length, faults }
}

const positions_shown = 5
const positionsText = (commits: ReadonlyArray<Acknowledged>) => {
  const positions = commits.slice(0, positions_shown).map(({ position }) => position)
  return `${positions.join(", ")} (${commits.length} in all)`
}

/**
 * Whether the store of another log, which has no generations, is under a mark of the second
 * generation. Such a log is read-only and too short, but only the read models reveal that its
 * commits are foreign.
 */
const is_beyond_the_mark = (master: keyof Masters, damages: ReadonlyArray<Damage>) =>
  master.endsWith("2") && damages.some(({ name }) => name === "put another installation's store")

/** Runs a case; a failing one is reported with the fewest damages that still fail. */
export const checkCase = Effect.fnUntraced(function* (
  masters: Masters,
  drawn: Case,
  data_dir: string,
) {
  if (is_beyond_the_mark(drawn.master, drawn.damages)) return undefined
  const { faults } = yield* runCase(masters[drawn.master], drawn.damages, data_dir)
  if (faults.length === 0) return undefined
  const least = yield* shrunk(masters, drawn, data_dir)
  const { words, faults: left } = yield* runCase(masters[least.master], least.damages, data_dir)
  return `${caseText(least)}: ${words.join("; ")}: ${(left.length > 0 ? left : faults).join("; ")}`
})

/** Copies the master to `data_dir`, damages the copy, and starts the log on it. */
export const runCase = Effect.fnUntraced(function* (
  master: Master,
  damages: ReadonlyArray<Damage>,
  data_dir: string,
) {
  const { place, acknowledged } = master
  rmSync(data_dir, { recursive: true, force: true })
  cpSync(place.data_dir, data_dir, { recursive: true })
  const here: Place = { ...place, data_dir }
  const words = damages.map((damage) => hurt(here, damage))
  const started = Effect.provide(answerOf(master), Layer.fresh(exclusive(settingsOf(data_dir))), {
    local: true,
  })
  const answered = yield* Effect.exit(started)
  if (Exit.isFailure(answered)) {
    // A start that fails with a reason loses nothing silently, but leaves no way out either.
    const verdict: Verdict = { words, lost: 0, faults: [`it does not start: ${answered.cause}`] }
    return verdict
  }
  const verdict: Verdict = { words, ...judge(acknowledged, answered.value) }
  return verdict
})
