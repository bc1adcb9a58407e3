/**
 * Timing, the port to time, for what runs without Effect: a clock, and something that is done
 * later. The shell gives the machine's; the cluster's simulator gives one that it moves itself.
 */

export interface Timing {
  /** This node's clock, in Unix nanoseconds: it may be set back, and differ from the others'. */
  readonly now: () => bigint
  /** Runs `run` once, `ms` milliseconds from now, unless what this answers is called before. */
  readonly after: (ms: number, run: () => void) => () => void
}
