/**
 * Measures the fastest batch size of a network. A large network gains, because it reads its weights
 * once per batch; a small one loses, because a batch does not fit the core's cache. Decision 0102.
 */

/** If one image takes less, the overhead of a run matters more than the cache. */
const tiny_network_ms = 1
/** Runs of each size. The fastest one is used: slower runs show other load on the machine. */
const runs = 4
/** No run starts after this time, to keep the startup short. */
const trial_ms_max = 1_000
/** The gain per image that a larger batch needs, because smaller batches respond sooner. */
const gain_min = 1.1

/**
 * The fastest batch size among the powers of two up to `batch_max`, and `batch_max` itself. The
 * sizes are measured in turn, so that other load on the machine affects all of them.
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
      if (count === 1 && image_ms < tiny_network_ms) return batch_max
      times.set(count, image_ms)
      if (now() - began > trial_ms_max) return fastestOf(times)
    }
  }
  return fastestOf(times)
}

/** The smallest size that no larger one beats by the required gain. */
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
