/**
 * The volume's only interface to the file system. Tests replace it with a simulated disk that can
 * fail, tear, reorder or lose any step.
 */

import fs from "node:fs"
import { syncFolder } from "#files"
import { makeDirect } from "./extents/direct.ts"

export interface VolumeFile {
  /**
   * Writes all parts consecutively from `position`, with as many calls as it takes. Positions and
   * lengths are in bytes.
   */
  readonly write: (parts: ReadonlyArray<Uint8Array>, position: number) => Promise<void>
  /**
   * Reads `length` bytes, or fewer at the end of the file, into the caller's buffer or a new one.
   */
  readonly read: (position: number, length: number, into?: Uint8Array) => Promise<Uint8Array>
  /** Like `read`, but synchronous: for a few KiB that are probably in the page cache. */
  readonly readSync: (position: number, length: number) => Uint8Array
  /** Makes writes durable. After a failure, the cached contents of the file cannot be trusted. */
  readonly datasync: () => Promise<void>
  readonly size: () => Promise<number>
  /** Shortens the file. A sync returns the space to the disk. */
  readonly truncate: (bytes: number) => Promise<void>
  readonly close: () => Promise<void>
}

/** Size and free space of a file system. */
export interface DiskSpace {
  readonly free_bytes: number
  readonly total_bytes: number
}

export interface VolumeDisk {
  readonly makeFolder: (path: string) => Promise<void>
  /** Creates a file with mode 0600. Fails if it exists. */
  readonly create: (path: string) => Promise<VolumeFile>
  /** Opens a file for reading and writing. */
  readonly open: (path: string) => Promise<VolumeFile>
  readonly rename: (from: string, to: string) => Promise<void>
  /** Removes a file, if it exists. */
  readonly remove: (path: string) => Promise<void>
  readonly names: (folder: string) => Promise<ReadonlyArray<string>>
  /** Makes a folder's directory entries durable. */
  readonly syncFolder: (path: string) => Promise<void>
  /** The size of a folder's file system, and the space available to an unprivileged process. */
  readonly space: (folder: string) => Promise<DiskSpace>
}

/** Maximum number of parts per call. Linux allows 1,024 (IOV_MAX). */
const parts_max = 1000

const file_mode = 0o600
const folder_mode = 0o700

type FsCallback<A> = (error: NodeJS.ErrnoException | null, value: A) => void

/** Promisifies the callback API of node:fs: the promises of a FileHandle take a sixth longer. */
const fsCall = <A>(call: (callback: FsCallback<A>) => void) =>
  new Promise<A>((resolve, reject) =>
    call((error, value) => (error === null ? resolve(value) : reject(error))),
  )

const fsCallVoid = (call: (callback: fs.NoParamCallback) => void) =>
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

/** Writes once. Throws if the disk accepts no bytes without an error, which would loop forever. */
const writeOnce = async (fd: number, parts: ReadonlyArray<Uint8Array>, position: number) => {
  const [only] = parts
  const written = await fsCall<number>((callback) =>
    only !== undefined && parts.length === 1
      ? fs.write(fd, only, 0, only.length, position, callback)
      : fs.writev(fd, parts, position, callback),
  )
  if (written > 0 || lengthOf(parts) === 0) return written
  throw new Error(`The disk accepted none of ${lengthOf(parts)} bytes.`)
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
  let read_bytes = 0
  while (read_bytes < length) {
    const read = await fsCall<number>((callback) =>
      fs.read(fd, buffer, read_bytes, length - read_bytes, position + read_bytes, callback),
    )
    if (read === 0) break
    read_bytes += read
  }
  return buffer.subarray(0, read_bytes)
}

/** Small reads share buffers, because V8 tracks and collects each buffer separately. */
const shared_bytes = 256 * 1024
/** A larger read gets its own buffer: starting a new shared one wastes the rest of the old one. */
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

const readSync = (fd: number, position: number, length: number) => {
  const buffer = sharedMemory(length)
  let read_bytes = 0
  while (read_bytes < length) {
    const read = fs.readSync(fd, buffer, read_bytes, length - read_bytes, position + read_bytes)
    if (read === 0) break
    read_bytes += read
  }
  return buffer.subarray(0, read_bytes)
}

/** Never uses the descriptor after close: its number may belong to another file by then. */
const opened = async (path: string, flags: string): Promise<VolumeFile> => {
  const fd = await fsCall<number>((callback) => fs.open(path, flags, file_mode, callback))
  let is_open = true
  const direct = makeDirect(fd)
  const assertOpen = () => {
    if (is_open) return fd
    throw Object.assign(new Error(`EBADF: ${path} is closed`), { code: "EBADF" })
  }
  return {
    write: async (parts, position) => {
      assertOpen()
      const written = await direct.write(parts, position)
      const left = written === 0 ? parts : after(parts, written)
      if (left.length > 0) await writeAll(assertOpen(), left, position + written)
    },
    read: async (position, length, into) => readAll(assertOpen(), position, length, into),
    readSync: (position, length) => readSync(assertOpen(), position, length),
    datasync: async () => {
      const open = assertOpen()
      await fsCallVoid((callback) => fs.fdatasync(open, callback))
    },
    truncate: async (bytes) => {
      const open = assertOpen()
      await fsCallVoid((callback) => fs.ftruncate(open, bytes, callback))
    },
    size: async () => {
      const open = assertOpen()
      return (await fsCall<fs.Stats>((callback) => fs.fstat(open, callback))).size
    },
    close: async () => {
      const open = assertOpen()
      is_open = false
      await direct.close()
      await fsCallVoid((callback) => fs.close(open, callback))
    },
  }
}

/**
 * The file system of this process. Errors are those of node:fs, with their `code`. A failed write
 * may have written any part of its bytes. Every read and write names its position.
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
