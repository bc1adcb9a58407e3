/** The version of this program, and the sources of its settings. */
import manifest from "#package.json" with { type: "json" }

/** The version from package.json. */
export const { version } = manifest

/** The sources of the settings, in addition to the environment. */
export interface SettingsSources {
  /** The value of `--config`: a path, or empty. */
  readonly config: string
  /** The values of `--set`, each `section.name=value`. */
  readonly set: ReadonlyArray<string>
}
