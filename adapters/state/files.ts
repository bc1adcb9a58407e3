/**
 * Selects the files of a data folder for a state backup.
 *
 * Source: docs/architecture.md, "The data folder".
 */

import { randomUUID } from "node:crypto"
import { createReadStream } from "node:fs"
import { chmod, lstat, mkdir, open, readdir, realpath, rename, rm, stat } from "node:fs/promises"
import { dirname, join } from "node:path"
import Sqlite from "better-sqlite3"
import type { Bytes } from "#adapters/state/seal.ts"
import { syncFolder } from "#files"

/** Why a file of the data folder is excluded from a state backup. */
export type Exclusion = "in_streams" | "made_again" | "large"

/** Excluded names; all other files are included, even unknown ones of later releases. */
const exclusions: ReadonlyArray<readonly [RegExp, Exclusion]> = [
  // The log, the published events and the cursors of webhooks are read from the bus.
  [/^nats$/, "in_streams"],
  [/^(run|read-models|engine|images|feeds|plant-models)$/, "made_again"],
  [/^(capital-pressure|carriers)\.sqlite(-wal|-shm|-journal)?$/, "made_again"],
  [/^spool-.*\.sqlite-(wal|shm|journal)$/, "made_again"],
  [/^(last-backup|restoring)\.json$|\.tmp$|^(log-(mark|kept)|disk-reserve)$/, "made_again"],
  // Blocks of a damaged log, and read models that were ahead of it: for manual inspection.
  [/^log-lost$/, "large"],
  // Backed up separately: docs/guide-backup-state.md.
  [/^(blobs|shares)$/, "large"],
]

/** Why a file is excluded; undefined if it is included. */
export const exclusionOf = (name: string) => exclusions.find(([pattern]) => pattern.test(name))?.[1]

/** Queues of facts for the log, which change constantly. */
export const isSpool = (path: string) => /^spool-.*\.sqlite$/.test(path)

export interface FoundFile {
  /** Relative path with slashes. */
  readonly path: string
  readonly mode: number
}

/**
 * The included regular files below a folder, in order, following links; empty if the folder does
 * not exist. A link to the folder `without` is not followed, so that a backup does not contain
 * itself. Rejects if a file cannot be read.
 */
export const includedFiles = async (
  folder: string,
  without = "",
): Promise<ReadonlyArray<FoundFile>> => {
  const other = without === "" ? "" : await realpath(without)
  const names = await readdir(folder).catch(orIfMissing<Array<string>>([]))
  const included = names.filter((name) => exclusionOf(name) === undefined).toSorted()
  return (await Promise.all(included.map((name) => filesAt(folder, name, other)))).flat()
}

const filesAt = async (
  folder: string,
  path: string,
  without: string,
): Promise<ReadonlyArray<FoundFile>> => {
  if (path.endsWith(".tmp")) return []
  const found = await followLink(join(folder, path)).catch(orIfMissing(undefined))
  if (found?.isFile()) return [{ path, mode: found.mode & 0o777 }]
  if (!found?.isDirectory()) return []
  if ((await realpath(join(folder, path)).catch(orIfMissing(""))) === without) return []
  const names = (await readdir(join(folder, path)).catch(orIfMissing<Array<string>>([]))).toSorted()
  return (
    await Promise.all(names.map((name) => filesAt(folder, `${path}/${name}`, without)))
  ).flat()
}

/**
 * Root follows a user's links only to that user's files, because a restore gives them that owner.
 */
const followLink = async (path: string) => {
  const found = await stat(path)
  const { uid } = await lstat(path)
  if (process.getuid?.() === 0 && uid !== 0 && uid !== found.uid) {
    throw new Error(`${path} is a link of user ${uid} to a file of user ${found.uid}`)
  }
  return found
}

/** Maps a missing file to `none`. */
const orIfMissing =
  <A>(none: A) =>
  (cause: unknown) => {
    if (cause instanceof Error && "code" in cause && cause.code === "ENOENT") return none
    throw cause
  }

/** A consistent read of a file: files are replaced atomically, and databases are snapshotted. */
export const bytesOf = (folder: string, path: string): AsyncIterable<Uint8Array> =>
  isSpool(path) ? databaseBytes(folder, path) : createReadStream(join(folder, path))

/** Snapshot of a database that may be in use, made by SQLite. */
async function* databaseBytes(folder: string, path: string): AsyncIterable<Uint8Array> {
  const copy = join(folder, "run", `${path}.${randomUUID()}.tmp`)
  const database = new Sqlite(join(folder, path), { readonly: true, fileMustExist: true })
  try {
    await database.backup(copy)
    yield* createReadStream(copy)
  } finally {
    database.close()
    await rm(copy, { force: true })
  }
}

/** Writes and syncs a new file (0600); removes it if the source or the disk fails. */
export const writeSynced = async (path: string, source: Bytes) => {
  const file = await open(path, "wx", 0o600)
  try {
    await file.writeFile(source)
    await file.sync()
  } catch (cause) {
    await rm(path, { force: true })
    throw cause
  } finally {
    await file.close()
  }
}

/** Writes and syncs a file atomically, and creates its folders with mode 0700. */
export const putFile = async (folder: string, { path, mode }: FoundFile, source: Bytes) => {
  const whole = join(folder, path)
  const first_made = await mkdir(dirname(whole), { recursive: true, mode: 0o700 })
  const partial = `${whole}.${randomUUID()}.tmp`
  await writeSynced(partial, source)
  await chmod(partial, mode)
  await rename(partial, whole)
  await syncFolder(dirname(whole))
  if (first_made === undefined) return
  // A new folder is durable only once its parent is synced.
  for (let parent = dirname(whole); parent.length >= first_made.length; parent = dirname(parent)) {
    await syncFolder(dirname(parent))
  }
}
