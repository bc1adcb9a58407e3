/** The settings and the result of a suite. */

export interface Settings {
  /** A new folder on the measured disk. */
  readonly folder: string
  readonly rounds: number
  /** Seconds per round. */
  readonly seconds: number
  /** Blob suite only: the sizes to measure, such as `16 MiB`, and the client counts. */
  readonly sizes?: ReadonlyArray<string>
  readonly clients?: ReadonlyArray<number>
  /**
   * Registers a stop function; the last one runs first, also if the suite fails or is interrupted.
   */
  readonly onEnd: (stop: () => Promise<void>) => void
}

/** Measures, and returns its section of docs/benchmark-results.md. */
export type Suite = (settings: Settings) => Promise<string>
