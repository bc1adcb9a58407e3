/** Rate and remaining time of a search. */

interface Sample {
  readonly at: number
  readonly done: number
}

/** Maximum age of the samples that the rate is computed from, in milliseconds. */
const window_ms = 10_000
/** Minimum duration before the rate is shown: it is unreliable at first. */
const rate_after_ms = 1_000

/** The samples within the window and the new one; times in milliseconds. */
export const addSample = (before: readonly Sample[], at: number, done: number): Sample[] => {
  const recent = before.filter((sample) => at - sample.at <= window_ms)
  // The last sample before the window marks its start.
  const old = before.findLast((sample) => at - sample.at > window_ms)
  return [...(old ? [old] : []), ...recent, { at, done }]
}

/** Numbers per second; undefined with too few samples. */
export const rateOf = (samples: readonly Sample[]): number | undefined => {
  const [first] = samples
  const last = samples.at(-1)
  if (!first || !last || last.at - first.at < rate_after_ms) return undefined
  return ((last.done - first.done) * 1000) / (last.at - first.at)
}

/** "40 ms", "0.8 s", "12 s", "2 min 5 s", "1 h 3 min" */
export const duration = (ms: number): string => {
  if (ms < 95) return `${Math.round(ms)} ms`
  if (ms < 9_950) return `${(ms / 1000).toFixed(1)} s`
  const seconds = Math.round(ms / 1000)
  if (seconds < 60) return `${seconds} s`
  const minutes = Math.floor(seconds / 60)
  if (minutes < 60) return `${minutes} min ${seconds % 60} s`
  return `${Math.floor(minutes / 60)} h ${minutes % 60} min`
}

/** An estimate, rounded to its precision: "about 2 min left". */
export const timeLeft = (numbers: number, rate: number): string => {
  const seconds = numbers / rate
  if (seconds < 10) return "a few seconds left"
  if (seconds < 90) return `about ${Math.round(seconds / 5) * 5} s left`
  const minutes = seconds / 60
  if (minutes < 90) return `about ${Math.round(minutes)} min left`
  return `about ${Math.round(minutes / 60)} h left`
}
