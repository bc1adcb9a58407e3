/** The far side of the reader: opens files read-only and answers one query after another. */
import { parentPort } from "node:worker_threads"
import Sqlite from "better-sqlite3"

export interface Question {
  readonly id: number
  readonly path: string
  /** Absent: close the file. */
  readonly sql?: string
  readonly parameters?: ReadonlyArray<unknown>
}

export interface Answer {
  readonly id: number
  readonly rows?: ReadonlyArray<unknown>
  readonly error?: string
}

const files = new Map<string, Sqlite.Database>()

const fileAt = (path: string) => {
  const file = files.get(path) ?? new Sqlite(path, { readonly: true })
  files.set(path, file)
  return file
}

const rowsFor = ({ path, sql, parameters = [] }: Question) => {
  if (sql !== undefined)
    return fileAt(path)
      .prepare(sql)
      .all(...parameters)
  files.get(path)?.close()
  files.delete(path)
  return []
}

parentPort?.on("message", (question: Question) => {
  const { id } = question
  try {
    parentPort?.postMessage({ id, rows: rowsFor(question) } satisfies Answer)
  } catch (error) {
    parentPort?.postMessage({ id, error: String(error) } satisfies Answer)
  }
})
