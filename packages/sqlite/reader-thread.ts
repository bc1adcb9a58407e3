/** The far side of the reader: opens files read-only and answers one query after another. */
import Sqlite from "better-sqlite3"
import { serveCalls } from "#threads"

/** A file, and which one that was at its path when the query was asked. */
export interface FileRead {
  readonly path: string
  readonly inode: number | undefined
}

export interface Question extends FileRead {
  readonly sql: string
  readonly parameters: ReadonlyArray<unknown>
}

export type Rows = ReadonlyArray<unknown>

const files = new Map<
  string,
  { readonly inode: number | undefined; readonly sqlite: Sqlite.Database }
>()

/** Another file may have taken the place of the one that is open, which is then read no more. */
const fileAt = ({ path, inode }: FileRead) => {
  const known = files.get(path)
  if (known !== undefined && known.inode === inode) return known.sqlite
  known?.sqlite.close()
  files.delete(path)
  const sqlite = new Sqlite(path, { readonly: true })
  files.set(path, { inode, sqlite })
  return sqlite
}

serveCalls(
  (question: Question): Rows =>
    fileAt(question)
      .prepare(question.sql)
      .all(...question.parameters),
)
