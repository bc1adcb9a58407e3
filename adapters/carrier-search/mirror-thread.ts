/**
 * The far side of the mirror: reads the file, and makes the rows of each search piece by piece. It
 * imports nothing of effect, which would be most of its start and its memory.
 */
import { workerData } from "node:worker_threads"
import type Sqlite from "better-sqlite3"
import {
  dots,
  isCurrent,
  key_of,
  type Mirror,
  type OpenMirror,
  openMirror,
  reasonOf,
} from "#adapters/carrier-search/mirror-file.ts"
import type { Range } from "#schemas/carrier-search/carrier.ts"
import { type Format, formats, rowOf } from "#schemas/carrier-search/format.ts"
import { serveCalls } from "#threads"

/**
 * begin: the first piece of a search, pinned to the file as it is now. next: the one after. end: it
 * needs nothing more. Its id is of whoever asks.
 */
export type Question =
  | { readonly id: number; readonly begin: { readonly range: Range; readonly format: Format } }
  | { readonly id: number; readonly next: true }
  | { readonly id: number; readonly end: true }
  | { readonly about: true }

/** A piece as actors/carrier-search/registry has it. */
export interface MadePiece {
  readonly done: number
  readonly found: number
  readonly rows: Uint8Array<ArrayBuffer>
}

export type Answer =
  | { readonly piece: MadePiece }
  | { readonly mirror: Mirror }
  | { readonly ended: true }

/** Rows of a piece: a quarter of a megabyte of JSON, made in a millisecond. */
const rows_max = 2000
/** Carriers of one number beside those of its piece: the registry's most are a handful. */
const carriers_of_number_max = 10_000

const literal = (text: string) => `'${text.replaceAll("'", "''")}'`

/** A row's text as an SQL expression: exactly that of `rowOf`, around what it says of a probe. */
const textOf = (format: Format) => {
  const [mc, name] = [97, "QQ"]
  const shown = format === "csv" ? name : JSON.stringify(name)
  const [before = "", after = ""] = rowOf(mc, name, format).split(shown)
  const [head = "", between = ""] = before.split(String(mc))
  const cell = format === "csv" ? "coalesce(cell, name)" : "json_quote(name)"
  const parts = [literal(head), `key / ${dots}`, literal(between), cell, literal(after)]
  return `concat(${parts.join(", ")})`
}

/** Count of the next rows, the last one's docket and USDOT number, and their text. */
type Chunk = readonly [number, number, number, Uint8Array | null]

/** SQLite puts the text together: each row handed to JavaScript alone takes twice as long. */
const chunkOf = (file: Sqlite.Database, format: Format) =>
  file
    .prepare(
      `select count(*), max(key) / ${dots}, max(key) % ${dots},
         cast(group_concat(${textOf(format)}, '') as blob)
       from (select key, name, cell from carrier
         where key between ${key_of} and ${key_of} order by key limit ?)`,
    )
    .raw()

/** A file in use, by how many searches. */
interface Held {
  readonly open: OpenMirror
  readonly chunk: Readonly<Record<Format, Sqlite.Statement<Array<unknown>>>>
  searches: number
}

interface Search {
  readonly held: Held
  readonly range: Range
  readonly format: Format
  /** Where it goes on: a docket. */
  from: number
  found: number
}

const path = String(workerData)
let current: Held | undefined
const searches = new Map<number, Search>()

const letGo = (held: Held) => {
  if (held !== current && held.searches === 0) held.open.file.close()
}

/** The file as it is now; one that was replaced is closed when its last search has ended. */
const lookAt = (): Held => {
  if (current !== undefined && isCurrent(current.open, path)) return current
  drop()
  const open = openMirror(path)
  const of = (format: Format) => [format, chunkOf(open.file, format)] as const
  // One for each format, by the line above.
  const chunk = Object.fromEntries(formats.map(of)) as Held["chunk"]
  current = { open, chunk, searches: 0 }
  return current
}

const drop = () => {
  const old = current
  current = undefined
  if (old !== undefined) letGo(old)
}

const end = (id: number) => {
  const search = searches.get(id)
  if (search === undefined) return
  searches.delete(id)
  search.held.searches--
  letGo(search.held)
}

const chunk = (
  { held, format }: Search,
  from: readonly [number, number],
  to: number,
  max: number,
) =>
  // The statement's own columns.
  held.chunk[format].get(...from, to, dots - 1, max) as Chunk

/** What can be handed over whole: memory of its own. Nothing is shared, and never handed over. */
const handed = (bytes: Uint8Array): Uint8Array<ArrayBuffer> =>
  bytes !== none && bytes.buffer instanceof ArrayBuffer && bytes.buffer.byteLength === bytes.length
    ? new Uint8Array(bytes.buffer)
    : Uint8Array.from(bytes)

const none = new Uint8Array(0)

/** A piece ends with all carriers of its last number. */
const pieceOf = (search: Search): MadePiece => {
  const { range } = search
  const [count, mc, dot, text] = chunk(search, [search.from, 0], range.end, rows_max)
  search.found += count
  if (count < rows_max) {
    search.from = range.end + 1
    return { done: range.end - range.start + 1, found: search.found, rows: handed(text ?? none) }
  }
  const rest = chunk(search, [mc, dot + 1], mc, carriers_of_number_max)
  if (rest[0] === carriers_of_number_max) throw new Error(`MC ${mc} has too many carriers`)
  search.found += rest[0]
  search.from = mc + 1
  const rows = handed(Buffer.concat([text ?? none, rest[3] ?? none]))
  return { done: mc - range.start + 1, found: search.found, rows }
}

const next = (id: number): Answer => {
  const search = searches.get(id)
  if (search === undefined) throw new Error("the search has ended")
  const piece = pieceOf(search)
  if (search.from > search.range.end) end(id)
  return { piece }
}

const begin = (id: number, range: Range, format: Format) => {
  const held = lookAt()
  held.searches++
  searches.set(id, { held, range, format, from: range.start, found: 0 })
}

const answer = (question: Question): Answer => {
  try {
    if ("about" in question) return { mirror: lookAt().open.mirror }
    if ("begin" in question) begin(question.id, question.begin.range, question.begin.format)
    if (!("end" in question)) return next(question.id)
    end(question.id)
    return { ended: true }
  } catch (error) {
    if ("id" in question) end(question.id)
    // What is wrong with the file may be mended at its next opening.
    drop()
    throw new Error(reasonOf(error))
  }
}

serveCalls(answer, (answered) => ("piece" in answered ? [answered.piece.rows.buffer] : []))
