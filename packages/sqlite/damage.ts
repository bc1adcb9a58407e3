/**
 * A read model's file that SQLite calls damaged: it is set aside, never deleted, and the log builds
 * it again. Only what is derived from the log may come here: no spool, no blobs.
 */
import { renameSync, rmSync, statSync } from "node:fs"
import Sqlite from "better-sqlite3"
import { Predicate } from "effect"

/** What SQLite itself keeps in one file beside another: what is moved with it. */
export const parts = ["", "-wal", "-shm"]

/** The text of both codes, as it comes from another thread. */
const damage_texts = ["database disk image is malformed", "file is not a database"]

/** Whether SQLite says that the bytes are not as it wrote them; a full disk is not that. */
export const isDamage = (cause: unknown) => {
  if (cause instanceof Sqlite.SqliteError) {
    return cause.code.startsWith("SQLITE_CORRUPT") || cause.code === "SQLITE_NOTADB"
  }
  return Predicate.hasProperty(cause, "message") && damage_texts.includes(String(cause.message))
}

/**
 * Moves the file beside, where somebody may look into it, and answers its new path. The one before
 * it goes: a disk that damages again and again is not filled.
 */
export const setAside = (path: string) => {
  const aside = `${path}.damaged`
  for (const part of parts) {
    rmSync(aside + part, { force: true })
    if (statSync(path + part, { throwIfNoEntry: false })) renameSync(path + part, aside + part)
  }
  return aside
}
