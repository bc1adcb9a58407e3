/**
 * The operations of the HTTP API as data: command groups, with one command per operation.
 *
 * Flags, tables, help and completion are derived from them, and a test compares them with the
 * OpenAPI document: every operation needs a command, every parameter a flag.
 */
import type { Json } from "#cli/client/json.ts"
import type { Session } from "#cli/client/session.ts"
import type { CommandName } from "#cli/client/summaries.ts"
import type { Described } from "#schemas/fields.ts"

/** A query parameter or body field, and its flag. */
export interface Field {
  /** The API's name; `retention.keep_last` is a member of an object. */
  readonly name: string
  readonly kind: "text" | "integer" | "boolean" | "list" | "map"
  readonly what: string
  /** Flag name without dashes, if not derived from `name`. */
  readonly flag?: string
  readonly choices?: ReadonlyArray<string>
  /** Shapes of the API that require it, which the client checks before the request. */
  readonly required_in?: ReadonlyArray<"A" | "B">
}

/** Principal of a development server whose token an operation uses. */
export type Need = "tenant" | "domain_owner" | "admin" | "blob" | "none"

export type Method = "GET" | "POST" | "PUT" | "PATCH" | "DELETE"

/** The operators' variant for all projects: another path, selected by a flag. */
export interface ForOperators {
  readonly path: string
  readonly flag: "all-projects" | "admin"
  readonly query?: ReadonlyArray<Field>
}

/** Columns that are not members of the API's items. */
export interface Computed {
  readonly columns: ReadonlyArray<string>
  /** The items with these columns added. */
  readonly add: (
    session: Session,
    items: ReadonlyArray<Json>,
    is_operator: boolean,
  ) => Promise<ReadonlyArray<Json>>
}

/** A part of a page: an object as a list of fields, or a table with a title. */
export interface Section {
  readonly title?: string
  readonly items: ReadonlyArray<Json>
  readonly columns?: ReadonlyArray<string>
}

export interface Operation {
  /** Name of the command, `list` for example. */
  readonly command: string
  readonly alias?: string
  readonly method: Method
  /** Path template; `{id}` is a positional argument. */
  readonly path: string
  readonly what: string
  readonly example?: string
  readonly query?: ReadonlyArray<Field>
  readonly body?: ReadonlyArray<Field>
  /** Member of the response that holds the items. */
  readonly items?: string
  /** Whether it accepts `limit` and `marker`. */
  readonly is_paged?: boolean
  /** Table columns; a narrow terminal drops the last ones first. */
  readonly columns?: ReadonlyArray<string>
  /** Schemas of a resource in the response, one per shape: the columns that `-o` may name. */
  readonly resource?: ReadonlyArray<Described>
  /** Columns that the client computes for the items of a table. */
  readonly computed?: Computed
  /** Tables of a response that is one object with lists in it. */
  readonly sections?: (body: Json) => ReadonlyArray<Section>
  /** Member of the response that holds the created resource, next to its job. */
  readonly created?: string
  /** Whether it may take minutes: requests NDJSON, so that the server sends keep-alive lines. */
  readonly is_long?: boolean
  /** Whether the response names a job that `--wait` waits for. */
  readonly has_job?: boolean
  /** Path of the current object that partial input is merged into; a PATCH uses its own path. */
  readonly base_path?: string
  readonly for_operators?: ForOperators
  readonly need?: Need
  /** Message for a response without a body. */
  readonly done?: string
}

/** An operation with a hand-written command, listed so that the OpenAPI test covers it. */
export interface Covered {
  readonly method: Method
  readonly path: string
  /** Query parameters that its command sends. */
  readonly query?: ReadonlyArray<string>
}

export interface CommandGroup {
  readonly name: CommandName
  readonly operations: ReadonlyArray<Operation>
  readonly covered?: ReadonlyArray<Covered>
}

type More = Partial<Omit<Field, "name" | "what" | "kind">>

const field =
  (kind: Field["kind"]) =>
  (name: string, what: string, more: More = {}): Field => ({ name, kind, what, ...more })

export const text = field("text")
export const integer = field("integer")
export const boolean = field("boolean")
/** Repeated on the command line. */
export const list = field("list")
/** `name=value`, repeated on the command line. */
export const map = field("map")

export const needed = { required_in: ["A", "B"] } as const satisfies More

export const choice = (name: string, what: string, choices: ReadonlyArray<string>, more?: More) =>
  text(name, what, { choices, ...more })

/** The flag of a field, without its dashes. */
export const flagOf = ({ name, flag }: Field) => flag ?? name.replaceAll(/[_.]/g, "-")

/** The names in a path's braces, in order. */
export const argumentsOf = (path: string) =>
  [...path.matchAll(/\{(\w+)\}/g)].map(([, name = ""]) => name)

/** Principal whose token an operation of this path uses. */
export const needOf = ({ need, path }: Pick<Operation, "need" | "path">): Need => {
  if (need !== undefined) return need
  if (/^\/v1\/(blobs|cluster)\b/.test(path)) return "blob"
  if (path.startsWith("/v1/admin/")) return "admin"
  if (path.startsWith("/v1/target-templates")) return "domain_owner"
  return path.startsWith("/v1/") ? "tenant" : "none"
}
