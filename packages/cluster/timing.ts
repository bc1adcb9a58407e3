/**
 * The port to the clock and timers, for code that runs without Effect. The server uses the
 * machine's clock; the cluster simulator uses a virtual one.
 */

export interface Timing {
  /**
   * This node's clock in Unix nanoseconds. It may be set back, and may differ from other nodes'
   * clocks.
   */
  readonly now: () => bigint
  /** Runs `run` once after `ms` milliseconds. The returned function cancels it. */
  readonly after: (ms: number, run: () => void) => () => void
}
