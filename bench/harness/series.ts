/** Rounds of several contestants, interleaved: A B C, A B C, ... */
import { causeText } from "#schemas/cause-text.ts"
import { type SyncNoise, syncNoise } from "./disk.ts"
import { type Effort, median, type Round, ratios } from "./round.ts"

export interface Series<R extends Round = Round> {
  readonly name: string
  readonly rounds: Array<R>
}

export interface Measured<R extends Round = Round> {
  readonly series: ReadonlyArray<Series<R>>
  /** The disk's noise just before each round. */
  readonly noise: ReadonlyArray<SyncNoise>
}

export const say = (line: string): void => console.error(`bench: ${line}`)

/** The result of `start`; on failure undefined, and one line that says why. */
export const orSkip = async <A>(name: string, start: () => Promise<A>): Promise<A | undefined> => {
  try {
    return await start()
  } catch (cause) {
    say(`${name} skipped: ${causeText(cause)}`)
    return undefined
  }
}

/** A contestant: its name, and how it runs one round. */
export interface Contender<R extends Round = Round> {
  readonly name: string
  readonly round: (effort: Effort) => Promise<R>
}

/**
 * Runs one discarded warm-up each, unless it has no runs, then `rounds` rounds in turn. A
 * contestant that fails is left out from then on.
 */
export const interleave = async <R extends Round>(
  seats: ReadonlyArray<Contender<R>>,
  effort: Effort,
  rounds: number,
  folder: string,
  warm_up: Effort = effort,
): Promise<Measured<R>> => {
  if (seats.length === 0) throw new Error("nothing is here to be measured")
  const series = seats.map(({ name }): Series<R> => ({ name, rounds: [] }))
  const noise: Array<SyncNoise> = []
  const failed = new Set<string>()
  for (let k = warm_up.runs_max > 0 ? -1 : 0; k < rounds; k++) {
    for (const [nth, seat] of seats.entries()) {
      if (failed.has(seat.name)) continue
      noise.push(await syncNoise(folder))
      const round = await orSkip(seat.name, () => seat.round(k < 0 ? warm_up : effort))
      if (!round) failed.add(seat.name)
      else if (k >= 0) series[nth]?.rounds.push(round)
    }
  }
  return { series: series.filter(({ rounds }) => rounds.length > 0), noise }
}

/** Runs per second of a series, round by round. */
export const rates = (series: Series): ReadonlyArray<number> =>
  series.rounds.map(({ runs_per_s }) => runs_per_s)

export interface Spread {
  readonly median: number
  readonly min: number
  readonly max: number
}

export const spread = (values: ReadonlyArray<number>): Spread => ({
  median: median(values),
  min: Math.min(...values),
  max: Math.max(...values),
})

/** ours / theirs round by round; undefined if `ours` is missing or the same as `theirs`. */
export const ratioSpread = (ours: Series | undefined, theirs: Series): Spread | undefined =>
  ours && ours !== theirs ? spread(ratios(rates(ours), rates(theirs))) : undefined
