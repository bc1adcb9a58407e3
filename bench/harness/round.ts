/** One round of measurements, and the statistics over several. */

export interface Effort {
  readonly in_flight: number
  readonly seconds: number
  /** A round ends early after this many runs. */
  readonly runs_max: number
}

export interface Round {
  readonly runs: number
  readonly runs_per_s: number
  readonly p50_ms: number
  readonly p99_ms: number
}

/** Runs `run(first)`, `run(first + 1)` ... with `in_flight` at a time, and waits for the last. */
export const drive = async (
  run: (i: number) => Promise<void>,
  first: number,
  { in_flight, seconds, runs_max }: Effort,
): Promise<Round> => {
  const latencies: Array<number> = []
  let next = first
  const began = performance.now()
  const end = began + seconds * 1000
  const lane = async () => {
    while (performance.now() < end && next < first + runs_max) {
      const sent = performance.now()
      await run(next++)
      latencies.push(performance.now() - sent)
    }
  }
  await Promise.all(Array.from({ length: in_flight }, lane))
  return summary(latencies, (performance.now() - began) / 1000)
}

/** Makes a round of latencies in milliseconds and the total seconds. */
export const summary = (latencies: Array<number>, seconds: number): Round => ({
  runs: latencies.length,
  runs_per_s: latencies.length / seconds,
  p50_ms: quantile(latencies, 0.5),
  p99_ms: quantile(latencies, 0.99),
})

/** The q-quantile, 0 to 1, by the nearest rank; NaN if there are no values. */
export const quantile = (values: ReadonlyArray<number>, q: number): number => {
  const sorted = values.toSorted((a, b) => a - b)
  return sorted[Math.max(0, Math.ceil(q * sorted.length) - 1)] ?? Number.NaN
}

/** The middle value; for an even count, the mean of the two middle ones. */
export const median = (values: ReadonlyArray<number>): number => {
  const sorted = values.toSorted((a, b) => a - b)
  const low = sorted[Math.floor((sorted.length - 1) / 2)] ?? Number.NaN
  return (low + (sorted[Math.floor(sorted.length / 2)] ?? Number.NaN)) / 2
}

/**
 * ours[k] / theirs[k] for each round k that both ran: only rounds adjacent in time are compared.
 */
export const ratios = (
  ours: ReadonlyArray<number>,
  theirs: ReadonlyArray<number>,
): ReadonlyArray<number> =>
  theirs.flatMap((their, k) => {
    const our = ours[k]
    return our === undefined ? [] : [our / their]
  })
