export type ProgramName = "nats-server" | "restic"

/** Where to look; `configured` is looked at alone, `environment` stands for process.env. */
export interface SearchOptions {
  readonly configured?: string | undefined
  readonly environment?: NodeJS.ProcessEnv
}

/** What is needed, from which version on, and how each program is asked for its version. */
export const programs: Readonly<
  Record<
    ProgramName,
    {
      readonly version_min: readonly number[]
      readonly ask: readonly string[]
      readonly by_hand: string
    }
  >
>

/** The folder of the cache that holds the programs. */
export const programFolder: () => string

/** The program to run, from the configured path, else PATH, else the project's cache. */
export const findBinary: (
  name: ProgramName,
  options?: SearchOptions,
) => { readonly path: string; readonly version: string } | undefined

/** One line for a person: what is missing, what was skipped and why, what to install by hand. */
export const missingBinary: (name: ProgramName, options?: SearchOptions) => string
