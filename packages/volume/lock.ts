/** The lock of a volume's folder: one process, and one store in it. */
import { existsSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import Sqlite from "better-sqlite3"
import { Effect } from "effect"
import { FileFailure, makeFolder } from "#files"
import { causeText } from "#schemas/cause-text.ts"

/** Only the owner may look inside. */
const folder_mode = 0o700
const file_mode = 0o600

/** What a store's folder holds the volume in. */
export const volumeFolder = (dir: string) => join(dir, "volume")

const lock = (folder: string) => {
  makeFolder(folder, folder_mode)
  const path = join(folder, "lock")
  if (!existsSync(path)) writeFileSync(path, "", { mode: file_mode })
  // A POSIX lock, which dies with its process; no child inherits it, and SQLite keeps two of one
  // process apart. Nothing else may open the file: closing it would let go of the lock.
  const database = new Sqlite(path, { timeout: 0 })
  try {
    database.pragma("locking_mode = EXCLUSIVE")
    database.exec("BEGIN EXCLUSIVE")
    return database
  } catch (cause) {
    database.close()
    throw cause
  }
}

const refused = (folder: string, cause: unknown) => {
  const is_held = cause instanceof Sqlite.SqliteError && cause.code.startsWith("SQLITE_BUSY")
  const reason = causeText(cause)
  const detail = is_held ? `${folder} is in use by another store` : `${folder}: ${reason}`
  const code = is_held ? "LOCKED" : "IO"
  return new FileFailure({ message: `The blob store cannot open: ${detail}`, code })
}

/**
 * Makes the folder where it is missing (0700) and holds it as long as the scope lasts. Fails where
 * another store holds it, or where it cannot be made.
 */
export const holdFolder = (folder: string) =>
  Effect.acquireRelease(
    Effect.try({ try: () => lock(folder), catch: (cause) => refused(folder, cause) }),
    (held) => Effect.sync(() => held.close()),
  )
