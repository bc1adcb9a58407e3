export type ProgramName = "nats-server" | "restic"

/**
 * Where to search. `configured` is the only candidate if set; `environment` replaces process.env.
 */
export interface SearchOptions {
  readonly configured?: string | undefined
  readonly environment?: NodeJS.ProcessEnv
}

/**
 * Each external program: its minimum version, the arguments that print its version, and where to
 * get it.
 */
export const programs: Readonly<
  Record<
    ProgramName,
    {
      readonly version_min: readonly number[]
      readonly version_args: readonly string[]
      readonly source: string
    }
  >
>

/** The cache folder for downloaded programs. */
export const programFolder: () => string

/** Finds the program at the configured path, or else on PATH, or else in the project's cache. */
export const findBinary: (
  name: ProgramName,
  options?: SearchOptions,
) => { readonly path: string; readonly version: string } | undefined

/** A one-line message: what is missing, what was skipped and why, and where to get it. */
export const missingBinary: (name: ProgramName, options?: SearchOptions) => string
