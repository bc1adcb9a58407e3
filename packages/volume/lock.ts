/** Locks a volume's folder: one process, one open volume. */
import { existsSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import Sqlite from "better-sqlite3"
import { Effect } from "effect"
import { FileFailure, makeFolder } from "#files"
import { causeText } from "#schemas/cause-text.ts"

/** Accessible to the owner only. */
const folder_mode = 0o700
const file_mode = 0o600

/** The folder of the volume inside a store's data folder. */
export const volumeFolder = (dir: string) => join(dir, "volume")

const lock = (folder: string) => {
  makeFolder(folder, folder_mode)
  const path = join(folder, "lock")
  if (!existsSync(path)) writeFileSync(path, "", { mode: file_mode })
  // A POSIX lock: the kernel releases it when the process dies, and children do not inherit it.
  // SQLite also rejects a second lock within the process. Nothing else may open the file, because
  // closing it would release the lock.
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
  return new FileFailure({ message: `The blob store cannot be opened: ${detail}`, code })
}

/**
 * Locks the folder until the scope closes, creating it with mode 0700 if needed. Fails if another
 * store holds the lock, or if the folder cannot be created.
 */
export const holdFolder = (folder: string) =>
  Effect.acquireRelease(
    Effect.try({ try: () => lock(folder), catch: (cause) => refused(folder, cause) }),
    (held) => Effect.sync(() => held.close()),
  )
