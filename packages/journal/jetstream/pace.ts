/**
 * Chooses the faster write mode for a group: each commit alone, or all as one atomic batch.
 *
 * A server that syncs each message pays that cost per commit; a batch costs more, but only once.
 * Disks differ, and their speed changes from minute to minute, so both modes are measured per group
 * size.
 */

/** Weight of the newest measurement of the mode in use: about the last ten count. */
const weight = 0.1

/** Weight of a probe of the other mode: probes are rare and must detect a change quickly. */
const probe_weight = 0.5

/** A single disk stall counts at most this many times the average. */
const outlier_factor = 4

/** Maximum share of the time spent on probes of the slower mode. */
const probe_share = 1 / 64

/**
 * Initial estimates in milliseconds, until there are measurements: 2 cores, ext4 on a virtio disk,
 * nats-server 2.15 with `sync_interval: always`; both modes break even at about 11 commits.
 */
const guess = {
  alone: (commits: number) => 0.25 + 0.25 * commits,
  batch: (commits: number) => 2.8 + 0.015 * commits,
}

export type Way = keyof typeof guess

/** Chooses a write mode by group size, and records how long each write took. */
export interface Pace {
  readonly choose: (commits: number) => Way
  readonly learn: (commits: number, way: Way, took_ms: number) => void
}

const other = (way: Way): Way => (way === "alone" ? "batch" : "alone")

export const pace = (): Pace => {
  const sizes = new Map<number, { alone: number; batch: number; spent: number }>()

  /** Groups within one power of two share their timings. */
  const of = (commits: number) => {
    const size = Math.floor(Math.log2(commits))
    const known = sizes.get(size)
    if (known) return known
    const fresh = { alone: guess.alone(commits), batch: guess.batch(commits), spent: 0 }
    sizes.set(size, fresh)
    return fresh
  }

  return {
    choose: (commits) => {
      if (commits === 1) return "alone"
      const known = of(commits)
      const cheap: Way = known.alone <= known.batch ? "alone" : "batch"
      const dear = other(cheap)
      if (known.spent * probe_share < known[dear]) return cheap
      known.spent = 0
      return dear
    },
    learn: (commits, way, took_ms) => {
      if (commits === 1) return
      const known = of(commits)
      const counted = Math.min(took_ms, known[way] * outlier_factor)
      const used = known[way] <= known[other(way)]
      known[way] += (used ? weight : probe_weight) * (counted - known[way])
      known.spent += counted
    },
  }
}
