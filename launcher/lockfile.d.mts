/** The parts of a lockfile that are read to complete it. */
export interface Lockfile {
  readonly packages: Readonly<
    Record<
      string,
      {
        readonly version?: string
        readonly optionalDependencies?: Readonly<Record<string, string>>
      }
    >
  >
}

/** Lockfile entries for the optional packages that the lockfile names but does not contain. */
export const missingPlatforms: (lock: Lockfile) => Record<string, object>
