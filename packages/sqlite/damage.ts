/**
 * Handles a damaged read model: its file is moved aside, not deleted, and rebuilt from the log.
 * Only for data that is derived from the log, never for spools or blobs.
 */
import { renameSync, rmSync, statSync } from "node:fs"
import Sqlite from "better-sqlite3"
import { Predicate } from "effect"

/** The suffixes of a database's files, which are moved together. */
export const file_suffixes = ["", "-wal", "-shm"]

/** The messages of both codes: errors from another thread have no code. */
const damage_texts = ["database disk image is malformed", "file is not a database"]

/** Whether SQLite reports corruption; a full disk, for example, is not corruption. */
export const isDamage = (cause: unknown) => {
  if (cause instanceof Sqlite.SqliteError) {
    return cause.code.startsWith("SQLITE_CORRUPT") || cause.code === "SQLITE_NOTADB"
  }
  return Predicate.hasProperty(cause, "message") && damage_texts.includes(String(cause.message))
}

/**
 * Moves the file aside for inspection and returns its new path. Replaces the previous one, so that
 * repeated damage does not fill the disk.
 */
export const moveAside = (path: string) => {
  const new_path = `${path}.damaged`
  for (const suffix of file_suffixes) {
    rmSync(new_path + suffix, { force: true })
    if (statSync(path + suffix, { throwIfNoEntry: false }))
      renameSync(path + suffix, new_path + suffix)
  }
  return new_path
}
