/** What a suite is given and answers. */

export interface Settings {
  /** A new folder on the disk that is measured. */
  readonly folder: string
  readonly rounds: number
  /** Of one round. */
  readonly seconds: number
  /** Of the blob suite: the sizes, such as `16 MiB`, and counts of clients that are measured. */
  readonly sizes?: ReadonlyArray<string>
  readonly clients?: ReadonlyArray<number>
  /** What is started is stopped, last first, also when the suite fails or is interrupted. */
  readonly onEnd: (stop: () => Promise<void>) => void
}

/** Measures, and answers its section of docs/benchmarks.md. */
export type Suite = (settings: Settings) => Promise<string>
