/** The reader's thread: opens files read-only and runs one query at a time. */
import Sqlite from "better-sqlite3"
import { serveCalls } from "#threads"
import { limitCache } from "./cache.ts"

/** A file, identified by its path and its inode at the time of the query. */
export interface FileRead {
  readonly path: string
  readonly inode: number | undefined
}

export interface ReadQuery extends FileRead {
  readonly sql: string
  readonly parameters: ReadonlyArray<unknown>
}

export type Rows = ReadonlyArray<unknown>

const files = new Map<
  string,
  { readonly inode: number | undefined; readonly sqlite: Sqlite.Database }
>()

/** Opens the file, and reopens it if another file has replaced it. */
const databaseAt = ({ path, inode }: FileRead) => {
  const open_file = files.get(path)
  if (open_file !== undefined && open_file.inode === inode) return open_file.sqlite
  open_file?.sqlite.close()
  files.delete(path)
  const sqlite = new Sqlite(path, { readonly: true })
  limitCache(sqlite)
  files.set(path, { inode, sqlite })
  return sqlite
}

serveCalls(
  (query: ReadQuery): Rows =>
    databaseAt(query)
      .prepare(query.sql)
      .all(...query.parameters),
)
