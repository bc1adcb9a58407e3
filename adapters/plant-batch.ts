/**
 * How many images a network takes at once where it is fastest: a large one reads its weights once
 * for all of them, a small one only loses its place in a core's own cache. Decision 0102.
 */

/** Below it what a run costs beside the network counts more than what its size changes. */
const short_ms = 1
/** Runs of each size; the fastest counts, as others are what else the machine did. */
const runs = 3
/** No further size is tried after it: a start must be short. */
const trial_ms_max = 1_000
/** Fewer images at once are answered sooner: more must be as much faster for each. */
const gain_min = 1.15

/** The fastest number of images from 1 to `batch_max`, of powers of two and `batch_max` itself. */
export const fastestBatch = async (
  run: (count: number) => Promise<unknown>,
  batch_max: number,
  now: () => number = () => performance.now(),
): Promise<number> => {
  const began = now()
  let best = 1
  let best_ms = Number.POSITIVE_INFINITY
  for (const count of sizesTo(batch_max)) {
    let image_ms = Number.POSITIVE_INFINITY
    // The first of a size sets up its memory.
    for (let n = 0; n <= runs; n++) {
      const from = now()
      await run(count)
      if (n > 0) image_ms = Math.min(image_ms, (now() - from) / count)
    }
    if (count === 1 && image_ms < short_ms) return batch_max
    if (image_ms * gain_min < best_ms) [best, best_ms] = [count, image_ms]
    if (now() - began > trial_ms_max) break
  }
  return best
}

const sizesTo = (batch_max: number): ReadonlyArray<number> => {
  const sizes: Array<number> = []
  for (let size = 1; size < batch_max; size *= 2) sizes.push(size)
  return [...sizes, batch_max]
}
