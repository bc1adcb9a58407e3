/** Settings from a TOML file, the environment and flags. Source: decisions, "configuration". */
import { hash } from "node:crypto"
import { join, resolve } from "node:path"
import { Effect, Redacted, Result, Schema } from "effect"
import { parse, TomlError } from "smol-toml"
import { capitalFile } from "#adapters/capital-pressure/dashboard-file.ts"
import { default_image } from "#adapters/share-protection/compute-images.ts"
import { FileFailure, readBounded } from "#files"
import {
  decodeSetting,
  fromText,
  type Group,
  isSetting,
  isTable,
  misspelt,
  nearest,
  quoted,
  type Setting,
  type SettingProblem,
} from "#schemas/setting.ts"
import { type Settings, settings, settings_by_path, variableOf } from "#schemas/settings.ts"
import { firstViolation } from "#schemas/settings-rules.ts"

/** Sources of settings; each overrides the previous one and the defaults. */
export interface Sources {
  /** The value of `--config`; without it ALMANAC_CONFIG names the file. */
  readonly config?: string | undefined
  readonly env: Readonly<Record<string, string | undefined>>
  /** The values of `--set`, each `section.name=value`. */
  readonly set: ReadonlyArray<string>
}

export interface Loaded {
  readonly settings: Settings
  /** Source of each setting by dotted name, for example `environment ALMANAC_LOG__LEVEL`. */
  readonly sources: ReadonlyMap<string, string>
}

/** A wrong name, type or range; one line with the setting and its source, without secrets. */
export class InvalidSettings extends Schema.TaggedError<InvalidSettings>()("InvalidSettings", {
  message: Schema.String,
}) {}

/** Maximum size of a configuration file, which is written by hand. */
const config_bytes_max = 2 ** 20
/** Maximum size of a secret; the longest is a private key. */
const secret_bytes_max = 2 ** 16

/**
 * Reads all sources. Makes folders absolute, and fills in development values for the embedded
 * identity.
 */
export const readSettings = Effect.fnUntraced(function* (sources: Sources) {
  const config = sources.config || sources.env.ALMANAC_CONFIG
  const from_file = config ? yield* fromFile(config) : []
  const from_env = yield* Effect.forEach(variables(sources.env), fromVariable)
  const from_flags = yield* Effect.forEach(sources.set, fromFlag)
  const source_by_path = new Map<string, string>()
  const raw = new Map<string, unknown>()
  for (const assignment of [...from_file, ...from_env.flat(), ...from_flags]) {
    yield* valid(
      decodeSetting(assignment.path, assignment.setting, assignment.raw),
      () => assignment.source,
    )
    source_by_path.set(assignment.path, assignment.source)
    raw.set(assignment.path, assignment.raw)
  }
  const sourceOf = ({ path }: SettingProblem) => source_by_path.get(path.replace(/\[.*/, ""))
  const decoded = decodeSection(settings, raw, "")
  const complete = yield* withSecrets(settings, yield* valid(decoded, sourceOf), "", source_by_path)
  // It has every name of `settings`, each decoded by its own schema.
  const complete_settings = withDevelopmentDefaults(
    withAbsolutePaths(complete as unknown as Settings),
    source_by_path,
  )
  const wrong =
    firstViolation(complete_settings) ??
    duplicateToken(complete_settings) ??
    missingSetting(complete_settings, source_by_path)
  if (wrong !== undefined) return yield* refuse(wrong, sourceOf(wrong))
  const loaded: Loaded = { settings: complete_settings, sources: source_by_path }
  return loaded
})

interface Assignment {
  readonly path: string
  readonly setting: Setting
  readonly raw: unknown
  readonly source: string
}

type Section = Readonly<Record<string, unknown>>

const refuse = ({ path, problem }: SettingProblem, source: string | undefined) =>
  invalid(`${path} ${problem}${source === undefined ? "" : ` (${source})`}`)

const invalid = (message: string) => Effect.fail(new InvalidSettings({ message }))

const valid = <A>(
  result: Result.Result<A, SettingProblem>,
  sourceOf: (wrong: SettingProblem) => string | undefined,
) =>
  Result.isSuccess(result)
    ? Effect.succeed(result.success)
    : refuse(result.failure, sourceOf(result.failure))

const fromFile = Effect.fnUntraced(function* (path: string) {
  const source = `file ${path}`
  const text = yield* Effect.mapError(
    readBounded(path, config_bytes_max),
    ({ message }) => new InvalidSettings({ message: `the configuration: ${message}` }),
  )
  const table = yield* Effect.try({
    try: () => parse(text, { unsafeKeyBehaviour: "throw" }),
    catch: (cause) => new InvalidSettings({ message: `${source}${notToml(cause)}` }),
  })
  return yield* assignmentsIn(settings, table, "", source)
})

/** Shortens the parser's message, which includes source lines that may contain a secret. */
const notToml = (cause: unknown) =>
  cause instanceof TomlError
    ? `, line ${cause.line}, column ${cause.column}: ${cause.message.split("\n", 1)[0]}`
    : " is not TOML"

const assignmentsIn: (
  group: Group,
  table: Section,
  prefix: string,
  source: string,
) => Effect.Effect<ReadonlyArray<Assignment>, InvalidSettings> = Effect.fnUntraced(
  function* (group, table, prefix, source) {
    const assignments: Array<Assignment> = []
    for (const [name, raw] of Object.entries(table)) {
      const path = prefix + name
      const node = Object.hasOwn(group, name) ? group[name] : undefined
      if (node === undefined) return yield* unknownSetting(path, source)
      if (isSetting(node)) assignments.push({ path, setting: node, raw, source })
      else if (isTable(raw))
        assignments.push(...(yield* assignmentsIn(node, raw, `${path}.`, source)))
      else return yield* refuse({ path, problem: `must be a section, [${path}]` }, source)
    }
    return assignments
  },
)

const paths = [...settings_by_path.keys()]
const names = [...paths, ...new Set(paths.flatMap((path) => path.split(".").slice(0, -1)))]

const unknownSetting = (path: string, source: string) =>
  refuse(
    { path: quoted(path), problem: `is not a setting${suggestionText(nearest(path, names))}` },
    source,
  )

const suggestionText = (name: string | undefined) =>
  name === undefined ? "" : `; did you mean ${name}?`

const prefix = "ALMANAC_"

/** Short names of environment variables, as other programs use them. */
const short_names: ReadonlyMap<string, string> = new Map([
  ["ALMANAC_DATA_DIR", "data.dir"],
  ["FRED_API_KEY", "capital.fred_key"],
  ["FMCSA_WEB_KEY", "carrier.web_key"],
  ["PRICES_SOURCE", "capital.prices_source"],
  ["CFTC_TLS_VERIFY", "capital.cftc_tls_verify"],
])

/** Setting paths by environment variable. */
const paths_by_variable = new Map([
  ...paths.map((path) => [variableOf(path), path] as const),
  ...short_names,
])

/** The longer name of a setting comes last, so it wins if both are set. */
const variables = (env: Sources["env"]) =>
  Object.entries(env)
    .filter(
      ([variable, text]) => variable.startsWith(prefix) || (text && short_names.has(variable)),
    )
    .filter(([variable]) => variable !== "ALMANAC_CONFIG")
    .sort(([a], [b]) => Number(short_names.has(b)) - Number(short_names.has(a)))

/** Numeric booleans that short names accept. */
const flag_values = new Map([
  ["1", "true"],
  ["0", "false"],
])

/** Ignores variables of the launcher and the tests, which have one underscore. */
const fromVariable = ([variable, text]: readonly [string, string | undefined]) => {
  const path = paths_by_variable.get(variable)
  const setting = path === undefined ? undefined : settings_by_path.get(path)
  if (path !== undefined && setting !== undefined) {
    const source = `environment ${variable}`
    const is_numbered = short_names.has(variable) && setting.form === "flag"
    const value_text = is_numbered ? (flag_values.get(text ?? "") ?? text) : text
    const assignment = { path, setting, raw: fromText(setting, value_text ?? ""), source }
    return Effect.succeed(text === undefined ? [] : [assignment])
  }
  const path_text = variable.slice(prefix.length).toLowerCase().replaceAll("__", ".")
  const nearest_path = path_text.includes(".")
    ? nearest(path_text, paths)
    : misspelt(path_text, paths)
  if (nearest_path === undefined && !path_text.includes(".")) return Effect.succeed([])
  const suggestion = nearest_path === undefined ? undefined : variableOf(nearest_path)
  return invalid(`${quoted(variable)} is not a setting${suggestionText(suggestion)} (environment)`)
}

const fromFlag = (text: string) => {
  const source = "flag --set"
  const end = text.indexOf("=")
  // Without a name the text could be a secret, so it is not repeated.
  if (end < 1) return invalid("--set needs section.name=value")
  const path = text.slice(0, end).trim()
  const setting = settings_by_path.get(path)
  if (setting === undefined) return unknownSetting(path, source)
  const raw = fromText(setting, text.slice(end + 1))
  if (!holdsSecret(setting, raw)) return Effect.succeed({ path, setting, raw, source })
  const other = setting.form === "secret" ? `${path}_file or ${variableOf(path)}` : "a file"
  const problem = `is a secret, and other users can see flags: set it with ${other}`
  return refuse({ path, problem }, source)
}

const holdsSecret = (setting: Setting, raw: unknown) => {
  if (setting.form !== "tables") return setting.form === "secret"
  const columns = Object.entries(setting.columns).filter(([, column]) => column.form === "secret")
  const rows = Array.isArray(raw) ? raw.filter(isTable) : []
  return rows.some((row) => columns.some(([name]) => Object.hasOwn(row, name)))
}

const decodeSection = (
  group: Group,
  raw: ReadonlyMap<string, unknown>,
  prefix: string,
): Result.Result<Section, SettingProblem> => {
  const entries = Object.entries(group).map(([name, node]) => {
    const path = prefix + name
    const value: Result.Result<unknown, SettingProblem> = isSetting(node)
      ? decodeSetting(path, node, raw.has(path) ? raw.get(path) : node.initial)
      : decodeSection(node, raw, `${path}.`)
    return Result.map(value, (value) => [name, value] as const)
  })
  return Result.map(Result.all(entries), Object.fromEntries)
}

/** Reads each secret whose `<name>_file` is set, also in tables. */
const withSecrets: (
  group: Group,
  values: Section,
  prefix: string,
  source_by_path: ReadonlyMap<string, string>,
) => Effect.Effect<Section, InvalidSettings> = Effect.fnUntraced(
  function* (group, values, prefix, source_by_path) {
    const filled: Record<string, unknown> = { ...values }
    for (const [name, node] of Object.entries(group)) {
      const path = prefix + name
      const file = values[`${name}_file`]
      if (!isSetting(node)) {
        // Decoding above ensures that sections and table rows are sections.
        filled[name] = yield* withSecrets(node, values[name] as Section, `${path}.`, source_by_path)
      } else if (node.form === "tables") {
        const rows = values[name] as ReadonlyArray<Section>
        filled[name] = yield* Effect.forEach(rows, (row, n) =>
          withSecrets(node.columns, row, `${path}[${n}].`, source_by_path),
        )
      } else if (node.form === "secret" && typeof file === "string" && file !== "") {
        const source = source_by_path.get(`${path}_file`.replace(/\[.*/, ""))
        if (Redacted.value(values[name] as Redacted.Redacted<string>) !== "") {
          return yield* refuse({ path, problem: `and ${path}_file cannot both be set` }, source)
        }
        filled[name] = yield* Effect.catch(readSecret(file), ({ message }) =>
          refuse({ path: `${path}_file`, problem: message }, source),
        )
      }
    }
    return filled
  },
)

/** Reads a secret without a trailing line feed, which editors add. */
const readSecret = Effect.fnUntraced(function* (path: string) {
  const secret = (yield* readBounded(path, secret_bytes_max)).replace(/\r?\n$/, "")
  if (secret === "") return yield* new FileFailure({ message: `${path} is empty`, code: "EMPTY" })
  return Redacted.make(secret)
})

const withAbsolutePaths = (settings: Settings): Settings => {
  const { blob, compute, shares, policy, database, manila, capital, carrier } = settings
  const dir = resolve(settings.data.dir)
  const inside = (path: string, name: string) => (path === "" ? join(dir, name) : resolve(path))
  const { connection } = database
  const read_models = connection.startsWith("postgres")
    ? connection
    : sqlite + inside(connection.slice(sqlite.length), "read-models")
  return {
    ...settings,
    data: { dir },
    blob: { ...blob, dir: inside(blob.dir, "blobs") },
    compute: { ...compute, images_dir: inside(compute.images_dir, "images") },
    shares: { ...shares, root: inside(shares.root, "shares") },
    manila: { ...manila, mounts_dir: inside(manila.mounts_dir, "mounts") },
    keystone_authtoken: withKeystoneUri(settings),
    policy: { file: policy.file === "" ? "" : resolve(policy.file) },
    database: { ...database, connection: read_models },
    capital: {
      ...capital,
      database: capitalFile({ capital, data: { dir } }),
      prices_dir: capital.prices_dir === "" ? "" : resolve(capital.prices_dir),
      watchlist: inside(capital.watchlist, "watchlist.json"),
    },
    carrier: { ...carrier, mirror: inside(carrier.mirror, "carriers.sqlite") },
  }
}

/** Sets the Keystone URL for callers without a valid token. */
const withKeystoneUri = ({ identity, keystone_authtoken }: Settings) => {
  const { www_authenticate_uri: uri, auth_url } = keystone_authtoken
  if (identity.kind !== "keystone" || uri !== "") return keystone_authtoken
  return { ...keystone_authtoken, www_authenticate_uri: auth_url }
}

/** Prefix of an SQLite connection string, followed by a folder. */
const sqlite = "sqlite:///"

/** Fills in development values, which exist only for the embedded identity. */
const withDevelopmentDefaults = (
  settings: Settings,
  source_by_path: ReadonlyMap<string, string>,
): Settings => {
  const { conductor, engine, compute, identity } = settings
  const isSet = (path: string, has_default: boolean) => source_by_path.has(path) || !has_default
  const is_embedded = identity.kind === "embedded"
  // DECISIONS, FIPS profile: off unless configured.
  const has_profile = isSet("engine.require_fips_profile", is_embedded)
  // A development S3 server runs on this machine or in its network.
  const has_networks = isSet("targets.allowed_networks", is_embedded)
  const has_image = isSet("conductor.worker_boot_image", is_embedded && compute.kind === "local")
  return {
    ...settings,
    ...(!has_profile && { engine: { ...engine, require_fips_profile: false } }),
    ...(!has_networks && { targets: { allowed_networks: private_networks } }),
    ...(!has_image && { conductor: { ...conductor, worker_boot_image: default_image } }),
  }
}

/** Loopback and private networks, without link-local, which cloud metadata services use. */
const private_networks =
  "127.0.0.0/8 ::1/128 10.0.0.0/8 172.16.0.0/12 192.168.0.0/16 fc00::/7".split(" ")

/** Finds a token that another entry has as a hash, which the schemas cannot detect. */
const duplicateToken = ({ auth: { tokens } }: Settings): SettingProblem | undefined => {
  const hashes = tokens.map(({ token, sha256 }) => sha256 || hash("sha256", Redacted.value(token)))
  const again = hashes.findIndex((sha256, n) => hashes.indexOf(sha256) !== n)
  const first = tokens[hashes.indexOf(hashes[again] ?? "")]
  if (first === undefined) return undefined
  return { path: `auth.tokens[${again}]`, problem: `is the same token as that of ${first.name}` }
}

/** Settings without a default unless the identity is embedded (DECISIONS, configuration). */
const required = ["database.connection", "worker.capacity_slots"]

const missingSetting = (
  { identity }: Settings,
  source_by_path: ReadonlyMap<string, string>,
): SettingProblem | undefined => {
  if (identity.kind === "embedded") return undefined
  const path = required.find((name) => !source_by_path.has(name))
  return path === undefined ? undefined : { path, problem: `is required with ${identity.kind}` }
}
