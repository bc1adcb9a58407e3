/**
 * The mirror's thread: reads the file and renders the rows of each search in chunks. It does not
 * import Effect, which would dominate its startup time and memory.
 */
import { workerData } from "node:worker_threads"
import type Sqlite from "better-sqlite3"
import {
  dot_limit,
  isCurrent,
  key_sql,
  type Mirror,
  type OpenMirror,
  openMirror,
  reasonOf,
} from "#adapters/carrier-search/mirror-file.ts"
import type { Range } from "#schemas/carrier-search/carrier.ts"
import { type Format, formats, rowOf } from "#schemas/carrier-search/format.ts"
import { serveCalls } from "#threads"

/**
 * begin: starts a search on the current file and returns its first chunk. next: returns the next
 * one. end: discards the search. The caller assigns the id.
 */
export type MirrorRequest =
  | { readonly id: number; readonly begin: { readonly range: Range; readonly format: Format } }
  | { readonly id: number; readonly next: true }
  | { readonly id: number; readonly end: true }
  | { readonly about: true }

/** A piece of actors/carrier-search/registry. */
export interface RenderedPiece {
  readonly done: number
  readonly found: number
  readonly rows: Uint8Array<ArrayBuffer>
}

export type MirrorResponse =
  | { readonly piece: RenderedPiece }
  | { readonly mirror: Mirror }
  | { readonly ended: true }

/** Rows per piece: 250 kB of JSON, rendered in a millisecond. */
const rows_max = 2000
/** Extra carriers with the last number of a piece; the registry has at most a handful. */
const carriers_of_number_max = 10_000

const literal = (text: string) => `'${text.replaceAll("'", "''")}'`

/** An SQL expression with the same result as `rowOf`, derived from a sample row. */
const textOf = (format: Format) => {
  const [mc, name] = [97, "QQ"]
  const escaped = format === "csv" ? name : JSON.stringify(name)
  const [before = "", after = ""] = rowOf(mc, name, format).split(escaped)
  const [head = "", between = ""] = before.split(String(mc))
  const cell = format === "csv" ? "coalesce(cell, name)" : "json_quote(name)"
  const parts = [literal(head), `key / ${dot_limit}`, literal(between), cell, literal(after)]
  return `concat(${parts.join(", ")})`
}

/** The number of rows, the last docket and USDOT number, and the text. */
type Chunk = readonly [number, number, number, Uint8Array | null]

/** SQLite concatenates the text: passing each row to JavaScript takes twice as long. */
const chunkOf = (file: Sqlite.Database, format: Format) =>
  file
    .prepare(
      `select count(*), max(key) / ${dot_limit}, max(key) % ${dot_limit},
         cast(group_concat(${textOf(format)}, '') as blob)
       from (select key, name, cell from carrier
         where key between ${key_sql} and ${key_sql} order by key limit ?)`,
    )
    .raw()

/** An open file and the number of searches that use it. */
interface OpenFile {
  readonly open: OpenMirror
  readonly chunk: Readonly<Record<Format, Sqlite.Statement<Array<unknown>>>>
  searches: number
}

interface Search {
  readonly file: OpenFile
  readonly range: Range
  readonly format: Format
  /** The next docket. */
  from: number
  found: number
}

const path = String(workerData)
let current: OpenFile | undefined
const searches = new Map<number, Search>()

const closeUnused = (file: OpenFile) => {
  if (file !== current && file.searches === 0) file.open.file.close()
}

/** The current file. A replaced file is closed after its last search. */
const currentFile = (): OpenFile => {
  if (current !== undefined && isCurrent(current.open, path)) return current
  drop()
  const open = openMirror(path)
  const of = (format: Format) => [format, chunkOf(open.file, format)] as const
  // The entries above have one statement for each format.
  const chunk = Object.fromEntries(formats.map(of)) as OpenFile["chunk"]
  current = { open, chunk, searches: 0 }
  return current
}

const drop = () => {
  const old = current
  current = undefined
  if (old !== undefined) closeUnused(old)
}

const end = (id: number) => {
  const search = searches.get(id)
  if (search === undefined) return
  searches.delete(id)
  search.file.searches--
  closeUnused(search.file)
}

const chunk = (
  { file, format }: Search,
  from: readonly [number, number],
  to: number,
  max: number,
) =>
  // The statement's own columns.
  file.chunk[format].get(...from, to, dot_limit - 1, max) as Chunk

/** Bytes with a buffer of their own, which can be transferred; the shared `none` is copied. */
const transferable = (bytes: Uint8Array): Uint8Array<ArrayBuffer> =>
  bytes !== none && bytes.buffer instanceof ArrayBuffer && bytes.buffer.byteLength === bytes.length
    ? new Uint8Array(bytes.buffer)
    : Uint8Array.from(bytes)

const none = new Uint8Array(0)

/** A piece ends with all carriers of its last number. */
const renderPiece = (search: Search): RenderedPiece => {
  const { range } = search
  const [count, mc, dot, text] = chunk(search, [search.from, 0], range.end, rows_max)
  search.found += count
  if (count < rows_max) {
    search.from = range.end + 1
    return {
      done: range.end - range.start + 1,
      found: search.found,
      rows: transferable(text ?? none),
    }
  }
  const rest = chunk(search, [mc, dot + 1], mc, carriers_of_number_max)
  if (rest[0] === carriers_of_number_max) throw new Error(`MC ${mc} has too many carriers`)
  search.found += rest[0]
  search.from = mc + 1
  const rows = transferable(Buffer.concat([text ?? none, rest[3] ?? none]))
  return { done: mc - range.start + 1, found: search.found, rows }
}

const next = (id: number): MirrorResponse => {
  const search = searches.get(id)
  if (search === undefined) throw new Error("the search has ended")
  const piece = renderPiece(search)
  if (search.from > search.range.end) end(id)
  return { piece }
}

const begin = (id: number, range: Range, format: Format) => {
  const file = currentFile()
  file.searches++
  searches.set(id, { file, range, format, from: range.start, found: 0 })
}

const respond = (request: MirrorRequest): MirrorResponse => {
  try {
    if ("about" in request) return { mirror: currentFile().open.mirror }
    if ("begin" in request) begin(request.id, request.begin.range, request.begin.format)
    if (!("end" in request)) return next(request.id)
    end(request.id)
    return { ended: true }
  } catch (error) {
    if ("id" in request) end(request.id)
    // Reopen the file for the next request, in case the error was temporary.
    drop()
    throw new Error(reasonOf(error))
  }
}

serveCalls(respond, (response) => ("piece" in response ? [response.piece.rows.buffer] : []))
