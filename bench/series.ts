/** Rounds of several contestants, one after the other and over again: A B C, A B C, ... */
import { type SyncNoise, syncNoise } from "./disk.ts"
import { type Effort, median, type Round, ratios } from "./round.ts"
import type { Seat } from "./stage.ts"

export interface Series {
  readonly name: string
  readonly rounds: Array<Round>
}

export interface Measured {
  readonly series: ReadonlyArray<Series>
  /** Of the disk just before each round. */
  readonly noise: ReadonlyArray<SyncNoise>
}

export const say = (line: string): void => console.error(`bench: ${line}`)

const messageOf = (cause: unknown) => (cause instanceof Error ? cause.message : String(cause))

/** What `start` answers, or nothing and one line that says why. */
export const orSkip = async <A>(name: string, start: () => Promise<A>): Promise<A | undefined> => {
  try {
    return await start()
  } catch (cause) {
    say(`${name} skipped: ${messageOf(cause)}`)
    return undefined
  }
}

/** One discarded warm-up each, then `rounds` rounds in turn. One that fails takes no more part. */
export const interleave = async (
  seats: ReadonlyArray<Pick<Seat, "name" | "round">>,
  effort: Effort,
  rounds: number,
  folder: string,
  warm_up: Effort = effort,
): Promise<Measured> => {
  if (seats.length === 0) throw new Error("nothing is here to be measured")
  const series = seats.map(({ name }): Series => ({ name, rounds: [] }))
  const noise: Array<SyncNoise> = []
  const failed = new Set<string>()
  for (let k = -1; k < rounds; k++) {
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

/** Rounds per second of a series, round by round. */
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

/** ours / theirs round by round; nothing where ours is not there or is theirs. */
export const ratioSpread = (ours: Series | undefined, theirs: Series): Spread | undefined =>
  ours && ours !== theirs ? spread(ratios(rates(ours), rates(theirs))) : undefined
