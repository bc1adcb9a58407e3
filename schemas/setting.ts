/** The declaration of a setting: its schema, default, range, meaning and source. */
import { Option, type Redacted, Result, Schema } from "effect"

/** How a value is written, which decides how text from the environment or a flag is parsed. */
export type Form = "text" | "url" | "integer" | "ratio" | "flag" | "list" | "tables" | "secret"

/** A type with its range, as worded in the documentation. */
export interface Kind<out A, out Raw> {
  readonly form: Form
  readonly schema: Schema.Decoder<unknown>
  readonly type: string
  readonly range: string
  readonly columns: Group
  readonly "~value"?: A
  readonly "~raw"?: Raw
}

export interface Setting<out A = unknown> extends Kind<A, unknown> {
  /** The default as written in the file; it is validated like any other value. */
  readonly initial: unknown
  readonly meaning: string
  readonly source: string
  readonly reloadable: boolean
}

/** A section: settings and sections by name. Names are words with underscores. */
export interface Group {
  readonly [name: string]: Setting | Group
}

/** The decoded values of a section. */
export type Values<Node> =
  Node extends Setting<infer A> ? A : { readonly [Name in keyof Node]: Values<Node[Name]> }

/** Declares a setting; `meaning` describes its effect and unit, `source` is its reference. */
export const setting = <A, Raw>(
  kind: Kind<A, Raw>,
  initial: NoInfer<Raw>,
  about: { readonly meaning: string; readonly source: string; readonly reloadable?: boolean },
): Setting<A> => ({ ...kind, reloadable: false, ...about, initial })

const none: Group = {}

/** An integer from `minimum` to `maximum`, inclusive, in `unit`. */
export const integer = (minimum: number, maximum: number, unit = ""): Kind<number, number> => ({
  form: "integer",
  schema: Schema.Int.check(Schema.isBetween({ minimum, maximum })),
  type: "integer",
  range: `${minimum} to ${maximum}${unit && ` ${unit}`}`,
  columns: none,
})

/** A ratio from 0 to 1, inclusive. */
export const ratio: Kind<number, number> = {
  form: "ratio",
  schema: Schema.Finite.check(Schema.isBetween({ minimum: 0, maximum: 1 })),
  type: "number",
  range: "0 to 1",
  columns: none,
}

export const flag: Kind<boolean, boolean> = {
  form: "flag",
  schema: Schema.Boolean,
  type: "true or false",
  range: "",
  columns: none,
}

/** One line of text; an empty text means "not set" if the pattern allows it. */
export const text = (pattern = /^[^\r\n\0]*$/, range = ""): Kind<string, string> => ({
  form: "text",
  schema: Schema.String.check(Schema.isMaxLength(text_length_max), Schema.isPattern(pattern)),
  type: "string",
  range,
  columns: none,
})

/** The maximum path length of Linux; nothing else is longer. */
const text_length_max = 4096

/** A network in CIDR notation. */
export const network = text(/^[0-9a-fA-F.:]+\/\d{1,3}$/, "CIDR, such as 10.0.0.0/8 or fd00::/8")

export const choice = <const Values extends ReadonlyArray<string>>(
  ...values: Values
): Kind<Values[number], Values[number]> => ({
  form: "text",
  schema: Schema.Literals(values),
  type: "string",
  range: `one of ${values.join(", ")}`,
  columns: none,
})

/** A URL with one of `schemes`, without a user or password; empty means "not set". */
export const url = (...schemes: ReadonlyArray<string>): Kind<string, string> => ({
  form: "url",
  schema: Schema.String.check(
    Schema.isMaxLength(text_length_max),
    Schema.makeFilter((value: string) => value === "" || isPlainUrl(value, schemes)),
  ),
  type: "URL",
  range: `${schemes.map((scheme) => `${scheme}://`).join(" or ")}, without user or password`,
  columns: none,
})

/** Servers of a cluster are separated by commas, as in NATS. */
const isPlainUrl = (value: string, schemes: ReadonlyArray<string>) =>
  value.split(",").every((one) => {
    const parsed = URL.canParse(one.trim()) ? new URL(one.trim()) : undefined
    const scheme = parsed?.protocol.slice(0, -1) ?? ""
    return schemes.includes(scheme) && parsed?.username === "" && parsed.password === ""
  })

/** A list of texts that all match `item`; at most 1,000. */
export const list = <A extends string>(
  item: Kind<A, string>,
): Kind<ReadonlyArray<A>, ReadonlyArray<A>> => ({
  form: "list",
  schema: Schema.Array(item.schema).check(Schema.isMaxLength(entries_max)),
  type: `list of ${item.form === "url" ? "URLs" : "strings"}`,
  range: item.range.replace(/^one of/, "each one of"),
  columns: none,
})

/** More entries than this in a handwritten list are a mistake. */
const entries_max = 1000

/** A list of tables with these columns; at most 1,000. */
export const tables = <Columns extends Group>(
  columns: Columns,
): Kind<ReadonlyArray<Values<Columns>>, ReadonlyArray<Values<Columns>>> => ({
  form: "tables",
  schema: Schema.Array(Schema.Unknown).check(Schema.isMaxLength(entries_max)),
  type: "list of tables",
  range: `columns ${Object.keys(columns).join(", ")}`,
  columns,
})

/** A value that is never printed; empty means "not set". Its `<name>_file` names a file instead. */
export const secret: Kind<Redacted.Redacted<string>, string> = {
  form: "secret",
  schema: Schema.RedactedFromValue(Schema.String.check(Schema.isMaxLength(text_length_max))),
  type: "secret string",
  range: "",
  columns: none,
}

export const isSetting = (node: Setting | Group): node is Setting => typeof node.form === "string"

/** All settings of a section and its subsections, by dotted name, in order. */
export const settingsOf = (group: Group, prefix = ""): ReadonlyArray<readonly [string, Setting]> =>
  Object.entries(group).flatMap(([name, node]) =>
    isSetting(node) ? [[prefix + name, node] as const] : settingsOf(node, `${prefix}${name}.`),
  )

/**
 * Parses the text of a variable or a flag into the file's form: integers, true and false, lists
 * with commas or as JSON, tables as JSON. Unparsable text is returned unchanged, and then rejected.
 */
export const fromText = (setting: Setting, value: string): unknown => {
  const trimmed = value.trim()
  if (setting.form === "ratio") return /^\d(\.\d{1,9})?$/.test(trimmed) ? Number(trimmed) : value
  if (setting.form === "integer") return /^-?\d{1,16}$/.test(trimmed) ? Number(trimmed) : value
  if (setting.form === "flag") return { true: true, false: false }[trimmed] ?? value
  const is_json = trimmed.startsWith("[")
  if (is_json && (setting.form === "list" || setting.form === "tables")) return fromJson(value)
  if (setting.form !== "list") return value
  return trimmed === "" ? [] : value.split(",").map((item) => item.trim())
}

const Json = Schema.fromJsonString(Schema.Unknown)

const fromJson = (value: string): unknown =>
  Option.getOrElse(Schema.decodeUnknownOption(Json)(value), () => value)

/** An invalid setting: its dotted name, and the problem without secrets. */
export interface SettingProblem {
  readonly path: string
  readonly problem: string
}

/** Decodes a value in the file's form, including the columns of tables. */
export const decodeSetting = (
  path: string,
  setting: Setting,
  raw: unknown,
): Result.Result<unknown, SettingProblem> => {
  const decoded = Schema.decodeUnknownOption(setting.schema)(raw)
  if (Option.isNone(decoded)) return Result.fail({ path, problem: mustBe(setting, raw) })
  if (setting.form !== "tables") return Result.succeed(decoded.value)
  // The schema guarantees an array; its items are checked below.
  const rows = decoded.value as ReadonlyArray<unknown>
  return Result.all(rows.map((row, n) => decodeRow(`${path}[${n}]`, setting.columns, row)))
}

const decodeRow = (path: string, columns: Group, row: unknown) => {
  if (!isTable(row)) return Result.fail({ path, problem: "must be a table" })
  const unknown = Object.keys(row).find((name) => !Object.hasOwn(columns, name))
  if (unknown !== undefined) {
    return Result.fail({ path, problem: `has no ${quoted(unknown)}${suggest(unknown, columns)}` })
  }
  const cells = settingsOf(columns).map(([name, column]) => {
    const raw = Object.hasOwn(row, name) ? row[name] : column.initial
    return Result.map(decodeSetting(`${path}.${name}`, column, raw), (cell) => [name, cell])
  })
  return Result.map(Result.all(cells), (entries) => Object.fromEntries(entries))
}

const suggest = (name: string, columns: Group) => {
  const near = nearest(name, Object.keys(columns))
  return near === undefined ? "" : `; did you mean ${near}?`
}

/** A table of a TOML file, or a JSON object. */
export const isTable = (raw: unknown): raw is Readonly<Record<string, unknown>> =>
  typeof raw === "object" && raw !== null && !Array.isArray(raw) && !(raw instanceof Date)

const mustBe = ({ form, type, range }: Setting, raw: unknown) => {
  const noun = form === "flag" ? type : `${form === "integer" ? "an" : "a"} ${type}`
  const expected = range === "" ? noun : `${noun} (${range})`
  // A URL may contain a password, and a table may contain a token.
  const hidden = form === "secret" || form === "url" || form === "tables"
  return `must be ${expected}${hidden ? "" : `, not ${excerptOf(raw)}`}`
}

const excerptOf = (raw: unknown) => {
  if (isTable(raw)) return "a table"
  const json = JSON.stringify(raw) ?? "nothing"
  return json.length > excerpt_length_max ? `${json.slice(0, excerpt_length_max)}...` : json
}

/** Maximum excerpt of a value: recognisable, and still one line. */
const excerpt_length_max = 60

/** A printable form of a name: on one line, quoted unless it is a plain name. */
export const quoted = (name: string) =>
  /^[\w.[\]-]{1,100}$/.test(name) ? name : excerptOf(name.slice(0, excerpt_length_max))

/** The most likely intended name: a near misspelling, or one with the same last word. */
export const nearest = (name: string, candidates: ReadonlyArray<string>): string | undefined => {
  const section = name.slice(0, name.lastIndexOf(".") + 1)
  const neighbours = candidates.filter((candidate) => candidate.startsWith(section))
  const alike = (candidate: string) => `_${lastWord(candidate)}`.endsWith(`_${lastWord(name)}`)
  return misspelt(name, candidates) ?? [...neighbours, ...candidates].find(alike)
}

/** The candidate with the fewest edits, if there are at most two. */
export const misspelt = (name: string, candidates: ReadonlyArray<string>): string | undefined => {
  if (name.length > compared_length_max) return undefined
  const scored = candidates.map((candidate) => ({ candidate, slips: slips(name, candidate) }))
  const [best] = scored.sort((a, b) => a.slips - b.slips)
  return best !== undefined && best.slips <= slips_max ? best.candidate : undefined
}

const lastWord = (name: string) => name.slice(name.lastIndexOf(".") + 1)

/** The comparison is quadratic, and no setting's name is longer. */
const compared_length_max = 100
/** Two swapped, missing or doubled letters. */
const slips_max = 2

/** The edit distance of two names (insert, remove, replace, swap neighbours). */
const slips = (from: string, to: string): number => {
  let before: ReadonlyArray<number> = []
  let row: ReadonlyArray<number> = Array.from({ length: to.length + 1 }, (_, n) => n)
  for (let i = 1; i <= from.length; i++) {
    const next = [i]
    for (let j = 1; j <= to.length; j++) {
      const same = from[i - 1] === to[j - 1] ? 0 : 1
      const swapped = same && from[i - 1] === to[j - 2] && from[i - 2] === to[j - 1]
      next[j] = Math.min(
        (row[j] ?? i) + 1,
        (next[j - 1] ?? j) + 1,
        (row[j - 1] ?? j) + same,
        swapped ? (before[j - 2] ?? 0) + 1 : Number.POSITIVE_INFINITY,
      )
    }
    before = row
    row = next
  }
  return row[to.length] ?? 0
}
