/**
 * The mirror's file: the carriers that a search returns, by docket and USDOT number, and a record
 * of the import. It is never modified; an import replaces it. Source: decision 0092.
 */
import { type BigIntStats, statSync } from "node:fs"
import { join, resolve } from "node:path"
import Sqlite from "better-sqlite3"
import { cell } from "#schemas/carrier-search/format.ts"
import { causeText } from "#schemas/cause-text.ts"
import type { Settings } from "#schemas/settings.ts"

const name = "carriers.sqlite"

/** The absolute path, which need not exist. */
export const mirrorFile = ({ carrier, data }: Pick<Settings, "carrier" | "data">): string =>
  resolve(carrier.mirror === "" ? join(data.dir, name) : carrier.mirror)

/** Whether the file exists, even if it is invalid. */
export const hasMirror = (path: string): boolean =>
  statSync(path, { throwIfNoEntry: false })?.isFile() === true

/** "almc": identifies the file to SQLite's tools and to this program. */
const application_id = 0x616c6d63
/**
 * A file with another layout must be imported again. The layout includes the output of
 * schemas/carrier-search/format, which is stored in the file.
 */
const layout_version = 1

/**
 * Upper bound of USDOT numbers, which have up to eight digits in the files. Docket and USDOT number
 * together are the row id, a 64-bit integer that JavaScript's numbers cannot hold. So it is
 * computed in SQL, with casts because parameters are bound as doubles. Carriers without a USDOT
 * number get a number that is unused with their docket.
 */
export const dot_limit = 200_000_000
export const key_sql = `cast(? as integer) * ${dot_limit} + cast(? as integer)`

export const tables = `
  create table carrier (
    key integer primary key,
    name text not null,
    -- The name as a cell of CSV, where that is another text.
    cell text
  ) strict;
  create table import (
    imported_at text not null,
    is_demo integer not null,
    -- Different MC numbers of all files, with or without a carrier.
    numbers integer not null,
    carriers integer not null
  ) strict;
  create table source (
    kind text not null,
    file text not null,
    as_of text not null,
    rows integer not null
  ) strict;
  pragma application_id = ${application_id};
  pragma user_version = ${layout_version};
`

/** The name as a CSV cell; null if it needs no escaping. */
export const csvCell = (name: string) => {
  const escaped = cell(name)
  return escaped === name ? null : escaped
}

/** A source file of a mirror. */
export interface MirrorSource {
  readonly kind: string
  /** File name without a folder. */
  readonly file: string
  /** RFC 3339. */
  readonly as_of: string
  readonly rows: number
}

export interface Mirror {
  readonly imported_at: string
  readonly is_demo: boolean
  readonly numbers: number
  readonly carriers: number
  readonly sources: ReadonlyArray<MirrorSource>
}

/** The error of a file that cannot be searched, with a remedy and without a path. */
const unreadable = (what: string) => new Error(`${what}; fill it with \`almanac carriers import\``)

/** Why a mirror cannot be read, for a search's failure. */
export const reasonOf = (error: unknown): string => {
  if (!(error instanceof Sqlite.SqliteError)) {
    return causeText(error)
  }
  const is_damaged = /^SQLITE_(CORRUPT|NOTADB|ERROR|FULL|IOERR_SHORT_READ)/.test(error.code)
  const what = is_damaged ? "the mirror is damaged" : `the mirror cannot be read (${error.code})`
  return unreadable(what).message
}

/** An open mirror, and its file's metadata when it was opened. */
export interface OpenMirror {
  readonly file: Sqlite.Database
  readonly stats: BigIntStats
  readonly mirror: Mirror
}

const isSame = (one: BigIntStats, other: BigIntStats | undefined) =>
  one.ino === other?.ino &&
  one.dev === other.dev &&
  one.mtimeNs === other.mtimeNs &&
  one.size === other.size

const statsOf = (path: string) => statSync(path, { bigint: true, throwIfNoEntry: false })

/** Whether the file at `path` is still the one that was opened. */
export const isCurrent = ({ stats }: OpenMirror, path: string): boolean =>
  isSame(stats, statsOf(path))

const numberOf = (file: Sqlite.Database, pragma: string) =>
  Number(file.pragma(pragma, { simple: true }))

type ImportRow = Omit<Mirror, "is_demo" | "sources"> & { readonly is_demo: number }

const readMirror = (file: Sqlite.Database, size: bigint): Mirror => {
  const id = numberOf(file, "application_id")
  if (id !== application_id) throw unreadable("the mirror's file is not a carrier mirror")
  if (numberOf(file, "user_version") !== layout_version) {
    throw unreadable("the mirror was made by another version of Almanac")
  }
  if (BigInt(numberOf(file, "page_count") * numberOf(file, "page_size")) !== size) {
    throw unreadable("the mirror is damaged")
  }
  const sql = "select kind, file, as_of, rows from source order by kind, file"
  // The columns of both tables are as this program's import created them.
  const sources = file.prepare(sql).all() as Array<MirrorSource>
  const import_row = file.prepare("select * from import").get() as ImportRow | undefined
  if (import_row === undefined) throw unreadable("the mirror is damaged")
  return { ...import_row, is_demo: import_row.is_demo === 1, sources }
}

/** How many times a file may be replaced while it is opened. */
const attempts_max = 10

/** Opens the mirror at `path` read-only. Throws an error for `reasonOf`. */
export const openMirror = (path: string): OpenMirror => {
  for (let attempt = 0; attempt < attempts_max; attempt++) {
    const stats = statsOf(path)
    if (stats === undefined) throw unreadable("no mirror exists yet")
    const file = new Sqlite(path, { readonly: true, fileMustExist: true })
    try {
      const mirror = readMirror(file, stats.size)
      if (isSame(stats, statsOf(path))) return { file, stats, mirror }
    } catch (error) {
      file.close()
      // The file was replaced while it was opened, so the error may be about a mixture of two
      // files.
      if (isSame(stats, statsOf(path))) throw error
      continue
    }
    file.close()
  }
  throw unreadable("the mirror was replaced repeatedly during the search")
}
