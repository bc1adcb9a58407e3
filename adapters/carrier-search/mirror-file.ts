/**
 * The file of a mirror: carriers that a search shows, by docket and USDOT number, and how it was
 * made. Written once, never changed: an import puts another in its place. Source: decision 0092.
 */
import { type BigIntStats, statSync } from "node:fs"
import { join, resolve } from "node:path"
import Sqlite from "better-sqlite3"
import { cell } from "#schemas/carrier-search/format.ts"
import { causeText } from "#schemas/cause-text.ts"
import type { Settings } from "#schemas/settings.ts"

const name = "carriers.sqlite"

/** An absolute path; whether anything is there is not looked at. */
export const mirrorFile = ({ carrier, data }: Pick<Settings, "carrier" | "data">): string =>
  resolve(carrier.mirror === "" ? join(data.dir, name) : carrier.mirror)

/** Whether there is a file that a search would read, whatever is in it. */
export const hasMirror = (path: string): boolean =>
  statSync(path, { throwIfNoEntry: false })?.isFile() === true

/** Tells SQLite's own tools, and us, what this file is: "almc". */
const application_id = 0x616c6d63
/** A file of another layout is imported again. It holds texts of schemas/carrier-search/format. */
const layout_version = 1

/**
 * USDOT numbers are below it, eight digits in the files. With a docket they make one number that
 * SQLite keeps in a row's own place, which JavaScript's numbers could not hold: so it never leaves
 * SQL, and the casts are needed, since each number is bound as a floating one. A carrier without a
 * USDOT number has the place of one that no other has with its docket.
 */
export const dots = 200_000_000
export const key_of = `cast(? as integer) * ${dots} + cast(? as integer)`

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
    -- Different MC numbers of all files, whatever became of them.
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

/** What the table has as a carrier's cell. */
export const shownOf = (name: string) => {
  const shown = cell(name)
  return shown === name ? null : shown
}

/** How a mirror was made. */
export interface MirrorSource {
  readonly kind: string
  /** Its name, without its folder. */
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

/** What to do about a file that cannot be searched; the message is for a person, without a path. */
const unreadable = (what: string) => new Error(`${what}; fill it with \`almanac carriers import\``)

/** Why a mirror cannot be read, in the words of a search's failure. */
export const reasonOf = (error: unknown): string => {
  if (!(error instanceof Sqlite.SqliteError)) {
    return causeText(error)
  }
  const is_damaged = /^SQLITE_(CORRUPT|NOTADB|ERROR|FULL|IOERR_SHORT_READ)/.test(error.code)
  const what = is_damaged ? "the mirror is damaged" : `the mirror cannot be read (${error.code})`
  return unreadable(what).message
}

/** A mirror that was opened, and the state of the file that it was opened from. */
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

type Made = Omit<Mirror, "is_demo" | "sources"> & { readonly is_demo: number }

const mirrorIn = (file: Sqlite.Database, size: bigint): Mirror => {
  const id = numberOf(file, "application_id")
  if (id !== application_id) throw unreadable("the mirror's file is no mirror of carriers")
  if (numberOf(file, "user_version") !== layout_version) {
    throw unreadable("the mirror is of another version of almanac")
  }
  if (BigInt(numberOf(file, "page_count") * numberOf(file, "page_size")) !== size) {
    throw unreadable("the mirror is damaged")
  }
  const sql = "select kind, file, as_of, rows from source order by kind, file"
  // Both tables are as this program's import wrote them.
  const sources = file.prepare(sql).all() as Array<MirrorSource>
  const made = file.prepare("select * from import").get() as Made | undefined
  if (made === undefined) throw unreadable("the mirror is damaged")
  return { ...made, is_demo: made.is_demo === 1, sources }
}

/** Times that a file may be replaced while it is being opened. */
const attempts_max = 10

/** Opens the mirror at `path`, to read. Throws an Error that `reasonOf` words. */
export const openMirror = (path: string): OpenMirror => {
  for (let attempt = 0; attempt < attempts_max; attempt++) {
    const stats = statsOf(path)
    if (stats === undefined) throw unreadable("there is no mirror yet")
    const file = new Sqlite(path, { readonly: true, fileMustExist: true })
    try {
      const mirror = mirrorIn(file, stats.size)
      if (isSame(stats, statsOf(path))) return { file, stats, mirror }
    } catch (error) {
      file.close()
      // It was put there between the look and the opening: what was seen is of two files.
      if (isSame(stats, statsOf(path))) throw error
      continue
    }
    file.close()
  }
  throw unreadable("the mirror changes all the time")
}
