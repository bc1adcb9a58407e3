/** The far side of the reader: opens files read-only and answers one query after another. */
import { parentPort } from "node:worker_threads"
import Sqlite from "better-sqlite3"

/** A file, and which one that was at its path when the query was asked. */
export interface FileRead {
  readonly path: string
  readonly inode: number | undefined
}

export interface Question extends FileRead {
  readonly id: number
  readonly sql: string
  readonly parameters: ReadonlyArray<unknown>
}

export interface Answer {
  readonly id: number
  readonly rows?: ReadonlyArray<unknown>
  readonly error?: string
}

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

const rowsFor = (question: Question) =>
  fileAt(question)
    .prepare(question.sql)
    .all(...question.parameters)

parentPort?.on("message", (question: Question) => {
  const { id } = question
  try {
    parentPort?.postMessage({ id, rows: rowsFor(question) } satisfies Answer)
  } catch (error) {
    parentPort?.postMessage({ id, error: String(error) } satisfies Answer)
  }
})
