/**
 * How many images a network takes at once where it is fastest: a large one reads its weights once
 * for all of them, a small one only loses its place in a core's own cache. Decision 0102.
 */

/** Below it what a run costs beside the network counts more than what its size changes. */
const short_ms = 1
/** Of each size; the fastest counts, as others are what else the machine did. */
const runs = 4
/** No further run is begun after it: a start must be short. */
const trial_ms_max = 1_000
/** Fewer images at once are answered sooner: more must be as much faster for each. */
const gain_min = 1.1

/**
 * The fastest number of images from 1 to `batch_max`, of powers of two and `batch_max` itself. The
 * sizes take turns: whatever else the machine does meanwhile holds none of them up alone.
 */
export const fastestBatch = async (
  run: (count: number) => Promise<unknown>,
  batch_max: number,
  now: () => number = () => performance.now(),
): Promise<number> => {
  const began = now()
  const times = new Map(sizesTo(batch_max).map((count) => [count, Number.POSITIVE_INFINITY]))
  for (let n = 0; n < runs; n++) {
    for (const [count, least_ms] of times) {
      const from = now()
      await run(count)
      const image_ms = Math.min(least_ms, (now() - from) / count)
      if (count === 1 && image_ms < short_ms) return batch_max
      times.set(count, image_ms)
      if (now() - began > trial_ms_max) return fastestOf(times)
    }
  }
  return fastestOf(times)
}

/** The smallest that none larger beats by the gain. */
const fastestOf = (times: ReadonlyMap<number, number>): number => {
  let [best, best_ms] = [1, Number.POSITIVE_INFINITY]
  for (const [count, image_ms] of times) {
    if (image_ms * gain_min < best_ms) [best, best_ms] = [count, image_ms]
  }
  return best
}

const sizesTo = (batch_max: number): ReadonlyArray<number> => {
  const sizes: Array<number> = []
  for (let size = 1; size < batch_max; size *= 2) sizes.push(size)
  return [...sizes, batch_max]
}
