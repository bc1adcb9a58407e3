/**
 * Detects changes of the dashboard's database.
 *
 * Any commit changes SQLite's data_version, which takes two microseconds to read. A replaced or
 * overwritten file has another inode, size or time, which is checked at most once per turn of the
 * event loop.
 */
import { type BigIntStats, statSync } from "node:fs"
import Sqlite from "better-sqlite3"
import { openStore } from "#adapters/capital-pressure/store.ts"

export interface WatchedFile {
  /** Returns a number that grows when the content may have changed. Throws if unreadable. */
  readonly changeCount: () => number
  /** The database, open since the last `changeCount`. */
  readonly file: () => Sqlite.Database
  readonly close: () => void
}

interface OpenFile {
  readonly stats: BigIntStats
  readonly file: Sqlite.Database
  readonly version: Sqlite.Statement<Array<unknown>>
}

const isSame = (one: BigIntStats, other: BigIntStats) =>
  one.ino === other.ino &&
  one.dev === other.dev &&
  one.mtimeNs === other.mtimeNs &&
  one.size === other.size

/** An exclusive lock means that nothing new is committed yet. */
const isBusy = (error: unknown) =>
  error instanceof Sqlite.SqliteError && error.code.startsWith("SQLITE_BUSY")

/** Opens the file on the first `changeCount`. `busy_ms` is how long to wait for a lock. */
export const watchedFile = (path: string, busy_ms?: number): WatchedFile => {
  let opened: OpenFile | undefined
  let last_version: unknown
  let changes = 0
  /** Whether the file was checked in this turn. */
  let is_checked = false

  const close = () => {
    opened?.file.close()
    opened = undefined
    last_version = undefined
  }
  const open = (stats: BigIntStats): OpenFile => {
    close()
    changes++
    const file = openStore(path, busy_ms)
    try {
      return { stats, file, version: file.prepare("pragma data_version").pluck() }
    } catch (error) {
      file.close()
      throw error
    }
  }
  const currentFile = (): OpenFile => {
    if (is_checked && opened !== undefined) return opened
    const stats = statSync(path, { bigint: true })
    if (opened === undefined || !isSame(opened.stats, stats)) opened = open(stats)
    is_checked = true
    setImmediate(() => {
      is_checked = false
    })
    return opened
  }
  const countChanges = () => {
    const { version: statement } = currentFile()
    try {
      const version = statement.get()
      if (version !== last_version) changes++
      last_version = version
    } catch (error) {
      if (!isBusy(error)) throw error
    }
    return changes
  }

  return {
    changeCount: () => {
      try {
        return countChanges()
      } catch (error) {
        close()
        throw error
      }
    },
    file: () => {
      if (opened === undefined) throw new Error("No database is open.")
      return opened.file
    },
    close,
  }
}
