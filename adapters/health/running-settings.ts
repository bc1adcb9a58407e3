/**
 * The settings of a running process, for CLI commands: without secrets, and without tables, which
 * contain tokens.
 */
import { resolve } from "node:path"
import { Equal, Result, Schema } from "effect"
import { decodeSetting, type Setting } from "#schemas/setting.ts"
import { type Settings, settings_by_path } from "#schemas/settings.ts"

export const RunningSettings = Schema.Struct({
  /** By dotted path, as in a configuration file; file names are absolute. */
  values: Schema.Record(Schema.String, Schema.Json),
  /** Paths of the secrets that are set. */
  secrets: Schema.Array(Schema.String),
})
export type RunningSettings = typeof RunningSettings.Type

/** Names of settings whose value is a file, relative to the working directory. */
const is_file = /(^|[._])(file|cert|key|ca|client_ca|binary|creds_file)$/

const isIncluded = ({ form }: Setting) => form !== "secret" && form !== "tables"

const valueAt = (settings: Settings, path: string) =>
  path
    .split(".")
    // Every declared path has a value.
    .reduce<unknown>((node, name) => (node as Readonly<Record<string, unknown>>)[name], settings)

const withValueAt = (settings: Settings, path: string, value: unknown): Settings => {
  const [name = "", ...rest] = path.split(".")
  const setIn = (node: unknown, key: string, remaining: ReadonlyArray<string>): unknown => {
    const [next, ...others] = remaining
    // As above.
    const from = node as Readonly<Record<string, unknown>>
    return { ...from, [key]: next === undefined ? value : setIn(from[key], next, others) }
  }
  // Values have been decoded by the setting's own schema.
  return setIn(settings, name, rest) as Settings
}

/** A value without secrets, for other processes. */
const exportedAt = (settings: Settings, path: string, { form }: Setting) => {
  const value = valueAt(settings, path)
  return form === "text" && is_file.test(path) && value !== "" ? resolve(String(value)) : value
}

export const exportSettings = (settings: Settings): RunningSettings => {
  const all = [...settings_by_path]
  return {
    values: Object.fromEntries(
      all
        .filter(([, setting]) => isIncluded(setting))
        // Other settings are a string, a number, a boolean or a list of strings.
        .map(([path, setting]) => [path, exportedAt(settings, path, setting) as Schema.Json]),
    ),
    secrets: all.flatMap(([path, { form }]) =>
      form === "secret" && isSet(settings, path) ? [path] : [],
    ),
  }
}

const isSet = (settings: Settings, path: string) => {
  const value = valueAt(settings, path)
  return Schema.is(Schema.Redacted(Schema.NonEmptyString))(value)
}

export interface SettingsComparison {
  /** The running process's settings, with this process's secrets. */
  readonly settings: Settings
  /** Paths of settings that differ in the running process. */
  readonly differing: ReadonlyArray<string>
  /** Paths of secrets that only the running process has. */
  readonly missing_secrets: ReadonlyArray<string>
}

/** The settings to check a running process with. The data folder is this process's. */
export const compareSettings = (
  own: Settings,
  { values, secrets }: RunningSettings,
): SettingsComparison => {
  let settings = own
  const differing: Array<string> = []
  for (const [path, setting] of settings_by_path) {
    if (path === "data.dir" || !isIncluded(setting) || !Object.hasOwn(values, path)) continue
    const decoded = decodeSetting(path, setting, values[path])
    if (Result.isFailure(decoded)) continue
    if (Equal.equals(decoded.success, exportedAt(own, path, setting))) continue
    differing.push(path)
    settings = withValueAt(settings, path, decoded.success)
  }
  return { settings, differing, missing_secrets: secrets.filter((path) => !isSet(own, path)) }
}
