/**
 * A spool's file: facts as JSON in SQLite, keyed by cursor. Synchronous; throws on failure.
 *
 * WAL with synchronous=FULL: written facts survive a power cut. Because writes wait for the disk,
 * they run in a separate thread.
 */
import Sqlite from "better-sqlite3"
import { v7 } from "uuid"

const setup = `
  create table if not exists fact (cursor integer primary key, fact text not null);
  create table if not exists spool (
    id integer primary key check (id = 1), epoch text not null, ceiling integer not null
  );
`

/**
 * Cursors reserved with each write. The cursors of facts that are lost before they are written are
 * not reused, as long as there are fewer such facts than this.
 */
const cursors_ahead = 1_000_000

/** Cursors per millisecond, so that a restored older file starts after the cursors it lost. */
const cursors_per_ms = 1_000

export interface Row {
  readonly cursor: number
  /** JSON. */
  readonly fact: string
}

export type SpoolRequest =
  | { readonly call: "open" | "close" }
  | { readonly call: "keep"; readonly rows: ReadonlyArray<Row> }
  | { readonly call: "scan"; readonly after: number; readonly max: number }
  | { readonly call: "forget"; readonly cursor: number }

/** State of a file after a request. */
export interface SpoolState {
  readonly epoch: string
  /**
   * The cursor of the first new fact: above all that were ever used in this file, even if it was
   * restored from a copy, unless the clock was set back too.
   */
  readonly first: number
  /** Number of rows. */
  readonly count: number
  /** Rows of a scan; empty for other requests. */
  readonly rows: ReadonlyArray<Row>
}

/** Opens or creates the file, and handles requests. */
export const spoolFile = (
  path: string,
  now_ms: number,
): ((request: SpoolRequest) => SpoolState) => {
  const sqlite = new Sqlite(path, { timeout: 0 })
  try {
    // The data folder belongs to one process, so a lock conflict must fail immediately.
    sqlite.pragma("locking_mode = EXCLUSIVE")
    sqlite.pragma("journal_mode = WAL")
    sqlite.pragma("synchronous = FULL")
    sqlite.exec(setup)
    sqlite.prepare("insert or ignore into spool values (1, ?, 0)").run(v7())
    return requestHandler(sqlite, now_ms)
  } catch (cause) {
    sqlite.close()
    throw cause
  }
}

const requestHandler = (sqlite: Sqlite.Database, now_ms: number) => {
  // The table has exactly one row, made by `setup`.
  const { epoch, ceiling } = sqlite.prepare("select epoch, ceiling from spool").get() as {
    readonly epoch: string
    readonly ceiling: number
  }
  const first = Math.max(ceiling + 1, now_ms * cursors_per_ms)
  const setCeiling = sqlite.prepare("update spool set ceiling = ?")
  setCeiling.run(first + cursors_ahead)
  let count = sqlite.prepare<[], number>("select count(*) from fact").pluck().get() ?? 0

  // A write whose response was not awaited is repeated.
  const insert = sqlite.prepare<[number, string]>("insert or ignore into fact values (?, ?)")
  const keep = sqlite.transaction((rows: ReadonlyArray<Row>) => {
    let changes = 0
    for (const { cursor, fact } of rows) changes += insert.run(cursor, fact).changes
    setCeiling.run((rows.at(-1)?.cursor ?? first) + cursors_ahead)
    return changes
  }).immediate
  const scan = sqlite.prepare<[number, number], Row>(
    "select cursor, fact from fact where cursor > ? order by cursor limit ?",
  )
  const forget = sqlite.prepare<[number]>("delete from fact where cursor <= ?")

  return (request: SpoolRequest): SpoolState => {
    let rows: ReadonlyArray<Row> = []
    if (request.call === "keep") count += keep(request.rows)
    if (request.call === "scan") rows = scan.all(request.after, request.max)
    if (request.call === "forget") count -= forget.run(request.cursor).changes
    if (request.call === "close") sqlite.close()
    return { epoch, first, count, rows }
  }
}
