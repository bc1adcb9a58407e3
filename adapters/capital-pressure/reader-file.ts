/**
 * An open file of the dashboard, and whether it is still what it was.
 *
 * A commit by anybody moves SQLite's data_version: two microseconds each time. That is not told of
 * a file that was put in the other's place, or written over: those have another inode, size or
 * time, which is looked for once in a turn of the event loop, however many requests it brings.
 */
import { type BigIntStats, statSync } from "node:fs"
import Sqlite from "better-sqlite3"
import { openStore } from "#adapters/capital-pressure/store.ts"

export interface WatchedFile {
  /** Rises when what is in the file may have changed. Throws where the file cannot be read. */
  readonly look: () => number
  /** The file as it was opened at the last look. */
  readonly file: () => Sqlite.Database
  readonly close: () => void
}

interface Opened {
  readonly stats: BigIntStats
  readonly file: Sqlite.Database
  readonly version: Sqlite.Statement<Array<unknown>>
}

const isSame = (one: BigIntStats, other: BigIntStats) =>
  one.ino === other.ino &&
  one.dev === other.dev &&
  one.mtimeNs === other.mtimeNs &&
  one.size === other.size

/** Whoever holds the file exclusively has committed nothing that others may see yet. */
const isBusy = (error: unknown) =>
  error instanceof Sqlite.SqliteError && error.code.startsWith("SQLITE_BUSY")

/** Opens what is at `path` at the first look; `busy_ms` is how long a locked file is waited for. */
export const watchedFile = (path: string, busy_ms?: number): WatchedFile => {
  let opened: Opened | undefined
  let seen: unknown
  let changes = 0
  /** Whether this turn has seen that the file is in its place. */
  let is_placed = false

  const close = () => {
    opened?.file.close()
    opened = undefined
    seen = undefined
  }
  const open = (stats: BigIntStats): Opened => {
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
  const place = (): Opened => {
    if (is_placed && opened !== undefined) return opened
    const stats = statSync(path, { bigint: true })
    if (opened === undefined || !isSame(opened.stats, stats)) opened = open(stats)
    is_placed = true
    setImmediate(() => {
      is_placed = false
    })
    return opened
  }
  const look = () => {
    const { version: statement } = place()
    try {
      const version = statement.get()
      if (version !== seen) changes++
      seen = version
    } catch (error) {
      if (!isBusy(error)) throw error
    }
    return changes
  }

  return {
    look: () => {
      try {
        return look()
      } catch (error) {
        close()
        throw error
      }
    },
    file: () => {
      if (opened === undefined) throw new Error("Nothing was opened.")
      return opened.file
    },
    close,
  }
}
