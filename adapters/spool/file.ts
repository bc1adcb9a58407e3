/**
 * A spool's file: facts as JSON in SQLite, by cursor. All of it is synchronous, and throws.
 *
 * WAL with synchronous=FULL: what is written outlives a power cut. That waits for the disk, so it
 * is done in a thread of its own.
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
 * Cursors that are set aside with each write. Facts may be recorded and lost before they are
 * written: no cursor of theirs is used again while they are fewer than this.
 */
const cursors_ahead = 1_000_000

/** Cursors in a millisecond, so that a file of an older state begins after what it forgot. */
const cursors_per_ms = 1_000

export interface Row {
  readonly cursor: number
  /** JSON. */
  readonly fact: string
}

export type Question =
  | { readonly call: "open" | "close" }
  | { readonly call: "keep"; readonly rows: ReadonlyArray<Row> }
  | { readonly call: "scan"; readonly after: number; readonly max: number }
  | { readonly call: "forget"; readonly cursor: number }

/** What a file is after a question. */
export interface Held {
  readonly epoch: string
  /**
   * The cursor of the first fact that is added: above all that were ever used in this file, also
   * where it was put back from a copy, unless the clock was put back too.
   */
  readonly first: number
  /** Rows that it holds. */
  readonly kept: number
  /** What a scan found; empty otherwise. */
  readonly rows: ReadonlyArray<Row>
}

/** Opens or makes the file, and answers one question after another. */
export const spoolFile = (path: string, now_ms: number): ((question: Question) => Held) => {
  const sqlite = new Sqlite(path, { timeout: 0 })
  try {
    // The data folder has one process: whoever else has the file open is a mistake, at once seen.
    sqlite.pragma("locking_mode = EXCLUSIVE")
    sqlite.pragma("journal_mode = WAL")
    sqlite.pragma("synchronous = FULL")
    sqlite.exec(setup)
    sqlite.prepare("insert or ignore into spool values (1, ?, 0)").run(v7())
    return answering(sqlite, now_ms)
  } catch (cause) {
    sqlite.close()
    throw cause
  }
}

const answering = (sqlite: Sqlite.Database, now_ms: number) => {
  // The table has this one row, by `setup` and the line after it.
  const { epoch, ceiling } = sqlite.prepare("select epoch, ceiling from spool").get() as {
    readonly epoch: string
    readonly ceiling: number
  }
  const first = Math.max(ceiling + 1, now_ms * cursors_per_ms)
  const raise = sqlite.prepare("update spool set ceiling = ?")
  raise.run(first + cursors_ahead)
  let kept = sqlite.prepare<[], number>("select count(*) from fact").pluck().get() ?? 0

  // A write whose answer nobody waited for is made again.
  const insert = sqlite.prepare<[number, string]>("insert or ignore into fact values (?, ?)")
  const keep = sqlite.transaction((rows: ReadonlyArray<Row>) => {
    let changes = 0
    for (const { cursor, fact } of rows) changes += insert.run(cursor, fact).changes
    raise.run((rows.at(-1)?.cursor ?? first) + cursors_ahead)
    return changes
  }).immediate
  const scan = sqlite.prepare<[number, number], Row>(
    "select cursor, fact from fact where cursor > ? order by cursor limit ?",
  )
  const forget = sqlite.prepare<[number]>("delete from fact where cursor <= ?")

  return (question: Question): Held => {
    let rows: ReadonlyArray<Row> = []
    if (question.call === "keep") kept += keep(question.rows)
    if (question.call === "scan") rows = scan.all(question.after, question.max)
    if (question.call === "forget") kept -= forget.run(question.cursor).changes
    if (question.call === "close") sqlite.close()
    return { epoch, first, kept, rows }
  }
}
