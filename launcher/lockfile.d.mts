/** A lockfile, as far as completing it looks at one. */
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

/** The optional packages that the lockfile names and does not hold, as lockfile entries. */
export const missingPlatforms: (lock: Lockfile) => Record<string, object>
