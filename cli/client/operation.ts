/**
 * What the command line asks of the HTTP API, as data: a noun and its verbs, each one operation.
 *
 * The flags, the tables, the help and the completion of a verb are made of these, and a test holds
 * them against the OpenAPI document: no operation without a verb, no parameter without a flag.
 */
import type { CommandName } from "#cli/client/summaries.ts"

/** A part of a query or of a body, and the flag that gives it. */
export interface Field {
  /** As the API spells it; `retention.keep_last` is a member of an object. */
  readonly name: string
  readonly kind: "text" | "integer" | "boolean" | "list" | "map"
  readonly what: string
  /** Without its dashes, where it is not the name with dashes for underscores. */
  readonly flag?: string
  readonly choices?: ReadonlyArray<string>
  /** The client says so before the server does. */
  readonly is_required?: boolean
}

/** Whose token an operation takes, where there are several: those of a development server. */
export type Need = "tenant" | "domain_owner" | "admin" | "blob" | "none"

export type Method = "GET" | "POST" | "PUT" | "PATCH" | "DELETE"

/** The same of all projects, for operators: another path, chosen by a flag. */
export interface ForOperators {
  readonly path: string
  readonly flag: "all-projects" | "admin"
  readonly query?: ReadonlyArray<Field>
}

export interface Operation {
  /** The verb, `list` for example; its other names behind it. */
  readonly verb: string
  readonly alias?: string
  readonly method: Method
  /** With `{id}` where a positional argument goes. */
  readonly path: string
  readonly what: string
  readonly example?: string
  readonly query?: ReadonlyArray<Field>
  readonly body?: ReadonlyArray<Field>
  /** Where the items of the answer are. */
  readonly items?: string
  /** Whether it takes `limit` and `marker`. */
  readonly is_paged?: boolean
  /** What a table shows of an item; on a narrow terminal the last go first. */
  readonly columns?: ReadonlyArray<string>
  /** Of the answer: the resource that was made, where a job comes with it. */
  readonly made?: string
  /** Whether it may take minutes: the server is asked to say meanwhile that it goes on. */
  readonly is_long?: boolean
  /** Whether the answer tells of a job that `--wait` waits for. */
  readonly has_job?: boolean
  /** Where what it is laid over is read; a PATCH is laid over what is at its own path. */
  readonly over?: string
  readonly for_operators?: ForOperators
  readonly need?: Need
  /** What is said in place of an answer without a body. */
  readonly done?: string
}

/** An operation that has a verb of its own making; it is listed so that none is forgotten. */
export interface Covered {
  readonly method: Method
  readonly path: string
  /** Queries that its verb gives, as the API spells them. */
  readonly query?: ReadonlyArray<string>
}

export interface Noun {
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

export const needed = { is_required: true } as const

export const choice = (name: string, what: string, choices: ReadonlyArray<string>, more?: More) =>
  text(name, what, { choices, ...more })

/** The flag of a field, without its dashes. */
export const flagOf = ({ name, flag }: Field) => flag ?? name.replaceAll(/[_.]/g, "-")

/** The names in a path's braces, in order. */
export const argumentsOf = (path: string) =>
  [...path.matchAll(/\{(\w+)\}/g)].map(([, name = ""]) => name)

/** Whose token an operation of this path takes. */
export const needOf = ({ need, path }: Pick<Operation, "need" | "path">): Need => {
  if (need !== undefined) return need
  if (/^\/v1\/(blobs|cluster)\b/.test(path)) return "blob"
  if (path.startsWith("/v1/admin/")) return "admin"
  if (path.startsWith("/v1/target-templates")) return "domain_owner"
  return path.startsWith("/v1/") ? "tenant" : "none"
}
