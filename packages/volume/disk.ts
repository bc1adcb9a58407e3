/**
 * All that a volume asks of a file system, named so that a simulator can stand in its place and let
 * any step fail, tear, reorder or vanish.
 */

import fs from "node:fs"
import { syncFolder } from "#files"
import { makeDirect } from "./extents/direct.ts"

export interface VolumeFile {
  /**
   * Writes the parts one behind the other from `position` on, all of them, however many calls it
   * takes. Positions and lengths in bytes.
   */
  readonly write: (parts: ReadonlyArray<Uint8Array>, position: number) => Promise<void>
  /** Reads `length` bytes, or fewer where the file ends, into the caller's buffer or its own. */
  readonly read: (position: number, length: number, into?: Uint8Array) => Promise<Uint8Array>
  /** As `read`, at once: for a few KiB that the page cache most likely has. */
  readonly readNow: (position: number, length: number) => Uint8Array
  /** Makes what was written durable. After it failed once nobody may trust the file's cache. */
  readonly datasync: () => Promise<void>
  readonly size: () => Promise<number>
  /** Takes away what is behind so many bytes; a sync gives its room back to the disk. */
  readonly truncate: (bytes: number) => Promise<void>
  readonly close: () => Promise<void>
}

/** Bytes of a file system. */
export interface DiskSpace {
  readonly free_bytes: number
  readonly total_bytes: number
}

export interface VolumeDisk {
  readonly makeFolder: (path: string) => Promise<void>
  /** Makes a file that must not exist yet, of mode 0600. */
  readonly create: (path: string) => Promise<VolumeFile>
  /** Opens a file for reading and writing. */
  readonly open: (path: string) => Promise<VolumeFile>
  readonly rename: (from: string, to: string) => Promise<void>
  /** Removes a file; one that is not there is as good as removed. */
  readonly remove: (path: string) => Promise<void>
  readonly names: (folder: string) => Promise<ReadonlyArray<string>>
  /** Makes the names in a folder durable. */
  readonly syncFolder: (path: string) => Promise<void>
  /** The file system of a folder: its size, and what a process without privileges may take. */
  readonly space: (folder: string) => Promise<DiskSpace>
}

/** Parts in one call at most: Linux takes 1,024 (IOV_MAX). */
const parts_max = 1000

const file_mode = 0o600
const folder_mode = 0o700

type Answered<A> = (error: NodeJS.ErrnoException | null, value: A) => void

/** Of node:fs the calls with callbacks: the promises of a FileHandle take a sixth longer. */
const asked = <A>(call: (answered: Answered<A>) => void) =>
  new Promise<A>((resolve, reject) =>
    call((error, value) => (error === null ? resolve(value) : reject(error))),
  )

const done = (call: (answered: fs.NoParamCallback) => void) =>
  new Promise<void>((resolve, reject) =>
    call((error) => (error === null ? resolve() : reject(error))),
  )

/** The parts without their first `bytes`. */
const after = (parts: ReadonlyArray<Uint8Array>, bytes: number) => {
  let left = bytes
  let index = 0
  for (let part = parts[0]; part !== undefined && left >= part.length; part = parts[index]) {
    left -= part.length
    index++
  }
  const [first, ...rest] = parts.slice(index)
  return first === undefined ? [] : [first.subarray(left), ...rest]
}

const lengthOf = (parts: ReadonlyArray<Uint8Array>) =>
  parts.reduce((sum, part) => sum + part.length, 0)

/** One call's worth of parts; a disk that takes nothing and says no error would never end. */
const writeOnce = async (fd: number, parts: ReadonlyArray<Uint8Array>, position: number) => {
  const [only] = parts
  const written = await asked<number>((answered) =>
    only !== undefined && parts.length === 1
      ? fs.write(fd, only, 0, only.length, position, answered)
      : fs.writev(fd, parts, position, answered),
  )
  if (written > 0 || lengthOf(parts) === 0) return written
  throw new Error(`The disk took none of ${lengthOf(parts)} bytes.`)
}

const writeAll = async (fd: number, parts: ReadonlyArray<Uint8Array>, position: number) => {
  let at = position
  for (let first = 0; first < parts.length; first += parts_max) {
    let left = parts.length <= parts_max ? parts : parts.slice(first, first + parts_max)
    for (let bytes = lengthOf(left); bytes > 0; ) {
      const written = await writeOnce(fd, left, at)
      at += written
      bytes -= written
      if (bytes > 0) left = after(left, written)
    }
  }
}

const readAll = async (fd: number, position: number, length: number, into?: Uint8Array) => {
  const buffer = into ?? Buffer.allocUnsafe(length)
  let have = 0
  while (have < length) {
    const read = await asked<number>((answered) =>
      fs.read(fd, buffer, have, length - have, position + have, answered),
    )
    if (read === 0) break
    have += read
  }
  return buffer.subarray(0, have)
}

/** Memory that small reads share: V8 counts and collects each piece of memory by itself. */
const shared_bytes = 256 * 1024
/** A read above it has memory of its own: what is left of a piece is given up. */
const sharing_bytes_max = 16 * 1024

const makeShared = () => {
  let piece = Buffer.alloc(0)
  let used = 0
  return (length: number) => {
    if (length > sharing_bytes_max) return Buffer.allocUnsafeSlow(length)
    if (used + length > piece.length) {
      piece = Buffer.allocUnsafeSlow(shared_bytes)
      used = 0
    }
    used += length
    return piece.subarray(used - length, used)
  }
}
const sharedMemory = makeShared()

const readNow = (fd: number, position: number, length: number) => {
  const buffer = sharedMemory(length)
  let have = 0
  while (have < length) {
    const read = fs.readSync(fd, buffer, have, length - have, position + have)
    if (read === 0) break
    have += read
  }
  return buffer.subarray(0, have)
}

/** After its close a descriptor's number may be another file's: it is never used again. */
const opened = async (path: string, flags: string): Promise<VolumeFile> => {
  const fd = await asked<number>((answered) => fs.open(path, flags, file_mode, answered))
  let is_open = true
  const direct = makeDirect(fd)
  const held = () => {
    if (is_open) return fd
    throw Object.assign(new Error(`EBADF: ${path} is closed`), { code: "EBADF" })
  }
  return {
    write: async (parts, position) => {
      held()
      const written = await direct.write(parts, position)
      const left = written === 0 ? parts : after(parts, written)
      if (left.length > 0) await writeAll(held(), left, position + written)
    },
    read: async (position, length, into) => readAll(held(), position, length, into),
    readNow: (position, length) => readNow(held(), position, length),
    datasync: async () => {
      const open = held()
      await done((answered) => fs.fdatasync(open, answered))
    },
    truncate: async (bytes) => {
      const open = held()
      await done((answered) => fs.ftruncate(open, bytes, answered))
    },
    size: async () => {
      const open = held()
      return (await asked<fs.Stats>((answered) => fs.fstat(open, answered))).size
    },
    close: async () => {
      const open = held()
      is_open = false
      await direct.close()
      await done((answered) => fs.close(open, answered))
    },
  }
}

/**
 * The file system of this process. Errors are those of node:fs, with their `code`; a write that
 * fails may have written any part of its bytes. A file's position is always said, never kept.
 */
export const volumeDisk: VolumeDisk = {
  makeFolder: async (path) => {
    await fs.promises.mkdir(path, { recursive: true, mode: folder_mode })
  },
  create: (path) => opened(path, "wx+"),
  open: (path) => opened(path, "r+"),
  rename: (from, to) => fs.promises.rename(from, to),
  remove: (path) => fs.promises.rm(path, { force: true }),
  names: (folder) => fs.promises.readdir(folder),
  syncFolder,
  space: async (folder) => {
    const { bavail, blocks, bsize } = await fs.promises.statfs(folder)
    return { free_bytes: bavail * bsize, total_bytes: blocks * bsize }
  },
}
