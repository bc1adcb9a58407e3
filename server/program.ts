/** The version of this program, and the sources of its settings. */
import manifest from "#package.json" with { type: "json" }

/** The version that package.json has. */
export const { version } = manifest

/** Sources of settings besides the environment. */
export interface SettingsSources {
  /** The value of `--config`: a path, or empty. */
  readonly config: string
  /** The values of `--set`, each `section.name=value`. */
  readonly set: ReadonlyArray<string>
}
