/** This program: its version, and where its settings come from. */
import manifest from "#package.json" with { type: "json" }

/** The version that package.json has. */
export const { version } = manifest

/** Where settings are read, besides the environment. */
export interface SettingsSources {
  /** The value of `--config`: a path, or empty. */
  readonly config: string
  /** The values of `--set`, each `section.name=value`. */
  readonly set: ReadonlyArray<string>
}
