/**
 * Which way to write a group costs less: each commit alone, or all as one atomic batch.
 *
 * A server that syncs each message takes its time per commit; a batch takes longer, but once. Disks
 * differ, and differ from minute to minute: so both ways are measured, by size of the group.
 */

/** Weight of the newest measurement of the way in use: the last ten or so count. */
const weight = 0.1

/** Weight of a probe of the other way: they are rare, and must tell soon when things changed. */
const probe_weight = 0.5

/** A single stall of the disk counts as this many times what is usual, not more. */
const outlier_factor = 4

/** Share of the time that may go into measuring the way that costs more. */
const probe_share = 1 / 64

/**
 * First guesses in milliseconds, until there are measurements: 2 cores, ext4 on a virtio disk,
 * nats-server 2.15 with `sync_interval: always`; the two meet at about 11 commits.
 */
const guess = {
  alone: (commits: number) => 0.25 + 0.25 * commits,
  batch: (commits: number) => 2.8 + 0.015 * commits,
}

export type Way = keyof typeof guess

/** Chooses a way for groups of a size, and learns what it took. */
export interface Pace {
  readonly choose: (commits: number) => Way
  readonly learn: (commits: number, way: Way, took_ms: number) => void
}

const other = (way: Way): Way => (way === "alone" ? "batch" : "alone")

export const pace = (): Pace => {
  const sizes = new Map<number, { alone: number; batch: number; spent: number }>()

  /** Groups are alike within a power of two. */
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
