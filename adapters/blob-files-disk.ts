/**
 * The few things the plain blob store asks of a file system, named so that a test can make any
 * fail.
 */
import { type FileHandle, open, readdir, rename, rm } from "node:fs/promises"

export interface Disk {
  /** Makes a file that must not exist yet. */
  readonly create: (path: string) => Promise<FileHandle>
  readonly open: (path: string) => Promise<FileHandle>
  /** Writes all of the bytes at the position, however many calls it takes. */
  readonly write: (file: FileHandle, bytes: Uint8Array, position: number) => Promise<void>
  /** Reads until the buffer is full; answers how many bytes there were. */
  readonly read: (file: FileHandle, into: Uint8Array, position: number) => Promise<number>
  readonly syncFile: (file: FileHandle) => Promise<void>
  /** Makes the names in a folder durable. */
  readonly syncFolder: (path: string) => Promise<void>
  readonly rename: (from: string, to: string) => Promise<void>
  /** Removes a file; one that is not there is as good as removed. */
  readonly remove: (path: string) => Promise<void>
  readonly names: (folder: string) => Promise<ReadonlyArray<string>>
  /** Runs one of the index's transactions. */
  readonly commit: (transaction: () => void) => void
}

const write: Disk["write"] = async (file, bytes, position) => {
  let done = 0
  while (done < bytes.length) {
    const { bytesWritten } = await file.write(bytes, done, bytes.length - done, position + done)
    done += bytesWritten
  }
}

const read: Disk["read"] = async (file, into, position) => {
  let done = 0
  while (done < into.length) {
    const { bytesRead } = await file.read(into, done, into.length - done, position + done)
    if (bytesRead === 0) break
    done += bytesRead
  }
  return done
}

const syncFolder: Disk["syncFolder"] = async (path) => {
  const folder = await open(path, "r")
  try {
    await folder.sync()
  } finally {
    await folder.close()
  }
}

export const disk: Disk = {
  create: (path) => open(path, "wx+", 0o600),
  open: (path) => open(path, "r"),
  write,
  read,
  syncFile: (file) => file.sync(),
  syncFolder,
  rename,
  remove: (path) => rm(path, { force: true }),
  names: (folder) => readdir(folder),
  commit: (transaction) => transaction(),
}
