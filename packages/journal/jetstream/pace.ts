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
const initial_ms = {
  alone: (commits: number) => 0.25 + 0.25 * commits,
  batch: (commits: number) => 2.8 + 0.015 * commits,
}

export type WriteMode = keyof typeof initial_ms

/** Chooses a write mode by group size, and records how long each write took. */
export interface Pace {
  readonly choose: (commits: number) => WriteMode
  readonly record: (commits: number, mode: WriteMode, took_ms: number) => void
}

const other = (mode: WriteMode): WriteMode => (mode === "alone" ? "batch" : "alone")

export const pace = (): Pace => {
  const sizes = new Map<number, { alone: number; batch: number; spent: number }>()

  /** Groups within one power of two share their timings. */
  const timingsOf = (commits: number) => {
    const size = Math.floor(Math.log2(commits))
    const known = sizes.get(size)
    if (known) return known
    const fresh = { alone: initial_ms.alone(commits), batch: initial_ms.batch(commits), spent: 0 }
    sizes.set(size, fresh)
    return fresh
  }

  return {
    choose: (commits) => {
      if (commits === 1) return "alone"
      const known = timingsOf(commits)
      const faster: WriteMode = known.alone <= known.batch ? "alone" : "batch"
      const slower = other(faster)
      if (known.spent * probe_share < known[slower]) return faster
      known.spent = 0
      return slower
    },
    record: (commits, mode, took_ms) => {
      if (commits === 1) return
      const known = timingsOf(commits)
      const counted_ms = Math.min(took_ms, known[mode] * outlier_factor)
      const used = known[mode] <= known[other(mode)]
      known[mode] += (used ? weight : probe_weight) * (counted_ms - known[mode])
      known.spent += counted_ms
    },
  }
}
