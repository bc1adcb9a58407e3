/**
 * Reads entries of a ZIP archive within limits: a few kilobytes can unpack to gigabytes.
 *
 * yauzl parses the format and holds each entry to its declared size; this file adds the limits and
 * the checksums.
 */
import { createWriteStream } from "node:fs"
import { pipeline } from "node:stream/promises"
import { crc32 } from "node:zlib"
import { type Entry, fromBufferPromise, openPromise, type ZipFile } from "yauzl"

const failure_name = "ZipFailure"

export interface ZipFailure extends Error {
  /** `damaged`: the archive is truncated, inconsistent or encrypted, or is not a ZIP archive. */
  readonly reason: "damaged" | "too large"
}

export const isZipFailure = (error: unknown): error is ZipFailure =>
  error instanceof Error && error.name === failure_name

const zipFailure = (reason: ZipFailure["reason"], message: string, cause?: unknown): ZipFailure =>
  Object.assign(new Error(message, { cause }), { name: failure_name, reason })

export interface Zip {
  readonly names: ReadonlyArray<string>
  /** The bytes of a small entry; undefined if the archive has no entry of that name. */
  readonly read: (name: string, bytes_max: number) => Promise<Buffer | undefined>
  /** Writes an entry to a new file; false if the archive has no entry of that name. */
  readonly extract: (name: string, path: string, bytes_max: number) => Promise<boolean>
  readonly close: () => void
}

const directory_bytes_max = 16 * 2 ** 20
const central_header_bytes = 46

/** Errors of the file system keep their code; any other error means a damaged archive. */
const failureOf = (error: unknown) =>
  error instanceof Error && "syscall" in error
    ? error
    : zipFailure("damaged", "The ZIP archive is damaged.", error)

const entriesOf = async (file: ZipFile, entries_max: number) => {
  if (file.entryCount > entries_max) throw new RangeError("too many entries")
  const entries = new Map<string, Entry>()
  let bytes = 0
  for await (const entry of file.eachEntry()) {
    const { fileNameLength, extraFieldLength, fileCommentLength } = entry
    bytes += central_header_bytes + fileNameLength + extraFieldLength + fileCommentLength
    if (bytes > directory_bytes_max) throw new RangeError("the directory is too large")
    if (entry.isEncrypted()) throw new RangeError("an entry is encrypted")
    entries.set(entry.fileName, entry)
  }
  return entries
}

async function* piecesOf(file: ZipFile, entry: Entry): AsyncGenerator<Buffer> {
  let sum = 0
  for await (const piece of await file.openReadStreamPromise(entry)) {
    sum = crc32(piece, sum)
    // Node types the chunks of a stream as any; those of yauzl are buffers.
    yield piece as Buffer
  }
  if (sum !== entry.crc32) throw new RangeError("the checksum does not match")
}

const zipOf = (file: ZipFile, entries: ReadonlyMap<string, Entry>): Zip => {
  const piecesWithin = (name: string, bytes_max: number) => {
    const entry = entries.get(name)
    if (entry === undefined) return undefined
    if (entry.uncompressedSize > bytes_max) {
      const max = Math.round(bytes_max / 2 ** 20)
      throw zipFailure("too large", `${name} has more than ${max} MB`)
    }
    return piecesOf(file, entry)
  }
  return {
    names: [...entries.keys()],
    read: async (name, bytes_max) => {
      const pieces = piecesWithin(name, bytes_max)
      if (pieces === undefined) return undefined
      try {
        return Buffer.concat(await Array.fromAsync(pieces))
      } catch (error) {
        throw failureOf(error)
      }
    },
    extract: async (name, path, bytes_max) => {
      const pieces = piecesWithin(name, bytes_max)
      if (pieces === undefined) return false
      try {
        await pipeline(pieces, createWriteStream(path, { flags: "wx", mode: 0o600 }))
        return true
      } catch (error) {
        throw failureOf(error)
      }
    },
    close: () => file.close(),
  }
}

/**
 * Opens an archive from a path or its bytes. If two entries have the same name, the last one is
 * used. Fails with a ZipFailure, or with the file system's error.
 */
export const openZip = async (source: string | Buffer, entries_max: number): Promise<Zip> => {
  let file: ZipFile | undefined
  try {
    file =
      typeof source === "string"
        ? await openPromise(source, { autoClose: false })
        : await fromBufferPromise(source)
    return zipOf(file, await entriesOf(file, entries_max))
  } catch (error) {
    file?.close()
    throw failureOf(error)
  }
}
