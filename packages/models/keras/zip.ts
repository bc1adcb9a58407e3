/**
 * Takes single entries out of a zip archive, stored or deflated, with 64-bit sizes; streamed, and
 * never more than is asked for: a few kilobytes can say that they become gigabytes.
 *
 * Source: PKWARE's APPNOTE 4.3; plant facts 3, trap 9.
 */
import { closeSync, fstatSync, openSync, readSync, writeSync } from "node:fs"
import { crc32, createInflateRaw } from "node:zlib"
import { unusable } from "../refusal.ts"

export interface Zip {
  readonly names: ReadonlyArray<string>
  /** A small entry's bytes; absent where there is none of that name. */
  readonly read: (name: string, bytes_max: number) => Promise<Buffer | undefined>
  /** Writes an entry into a new file; false where there is none of that name. */
  readonly extract: (name: string, path: string, bytes_max: number) => Promise<boolean>
  readonly close: () => void
}

interface Entry {
  readonly name: string
  readonly method: number
  readonly crc: number
  readonly packed: number
  readonly bytes: number
  /** Where its own head begins. */
  readonly place: number
}

const entries_max = 10_000
const directory_bytes_max = 16 * 2 ** 20
const comment_bytes_max = 65_535
const piece_bytes = 2 ** 20

const end_bytes = 22
const end64_bytes = 56
const locator_bytes = 20
const central_bytes = 46
const local_bytes = 30
const end_mark = 0x06054b50
const end64_mark = 0x06064b50
const locator_mark = 0x07064b50
const central_mark = 0x02014b50
const local_mark = 0x04034b50
const method_stored = 0
const method_deflated = 8
const is_encrypted = 1
/** In place of a 32-bit number that is in the extra field as 64 bits. */
const elsewhere = 0xffffffff

const damaged = (): never => unusable("The .keras file is damaged: it is no whole zip archive.")

type At = (place: number, bytes: number) => Buffer

const reader =
  (file: number, size: number): At =>
  (place, bytes) => {
    if (place < 0 || place + bytes > size) return damaged()
    const buffer = Buffer.alloc(bytes)
    for (let read = 0; read < bytes; ) {
      const more = readSync(file, buffer, read, bytes - read, place + read)
      if (more === 0) return damaged()
      read += more
    }
    return buffer
  }

const long = (bytes: Buffer, place: number) => Number(bytes.readBigUInt64LE(place))

/** Where the directory is, and its length. */
const directoryOf = (at: At, size: number) => {
  const tail_bytes = Math.min(size, end_bytes + comment_bytes_max)
  const tail = at(size - tail_bytes, tail_bytes)
  let end = tail.length - end_bytes
  while (end >= 0 && tail.readUInt32LE(end) !== end_mark) end--
  if (end < 0) return damaged()
  const bytes = tail.readUInt32LE(end + 12)
  const place = tail.readUInt32LE(end + 16)
  const locator = size - tail_bytes + end - locator_bytes
  if (locator < 0) return { place, bytes }
  const found = at(locator, locator_bytes)
  if (found.readUInt32LE(0) !== locator_mark) return { place, bytes }
  const end64 = at(long(found, 8), end64_bytes)
  if (end64.readUInt32LE(0) !== end64_mark) return damaged()
  return { place: long(end64, 48), bytes: long(end64, 40) }
}

/** The numbers that did not fit, in their order. */
const wide = (extra: Buffer, numbers: ReadonlyArray<number>) => {
  let field = 0
  while (field + 4 <= extra.length && extra.readUInt16LE(field) !== 1) {
    field += 4 + extra.readUInt16LE(field + 2)
  }
  let place = field + 4
  return numbers.map((number) => {
    if (number !== elsewhere) return number
    if (place + 8 > extra.length) return damaged()
    place += 8
    return long(extra, place - 8)
  })
}

const entriesOf = (at: At, size: number): ReadonlyArray<Entry> => {
  const { place: first, bytes } = directoryOf(at, size)
  if (bytes > directory_bytes_max) return damaged()
  const directory = at(first, bytes)
  const entries: Array<Entry> = []
  for (let place = 0; place + central_bytes <= directory.length; ) {
    if (directory.readUInt32LE(place) !== central_mark || entries.length >= entries_max) damaged()
    const name_bytes = directory.readUInt16LE(place + 28)
    const extra_bytes = directory.readUInt16LE(place + 30)
    const name_place = place + central_bytes
    const extra_place = name_place + name_bytes
    const extra = directory.subarray(extra_place, extra_place + extra_bytes)
    const [unpacked = 0, packed = 0, local = 0] = wide(extra, [
      directory.readUInt32LE(place + 24),
      directory.readUInt32LE(place + 20),
      directory.readUInt32LE(place + 42),
    ])
    if ((directory.readUInt16LE(place + 8) & is_encrypted) !== 0) damaged()
    entries.push({
      name: directory.subarray(name_place, extra_place).toString("utf8"),
      method: directory.readUInt16LE(place + 10),
      crc: directory.readUInt32LE(place + 16),
      packed,
      bytes: unpacked,
      place: local,
    })
    place = extra_place + extra_bytes + directory.readUInt16LE(place + 32)
  }
  return entries
}

/** Its bytes, piece by piece, as they are in the archive. */
function* packedOf(at: At, { place, packed }: Entry) {
  const head = at(place, local_bytes)
  if (head.readUInt32LE(0) !== local_mark) damaged()
  const first = place + local_bytes + head.readUInt16LE(26) + head.readUInt16LE(28)
  for (let read = 0; read < packed; read += piece_bytes) {
    yield at(first + read, Math.min(piece_bytes, packed - read))
  }
}

async function* unpackedOf(at: At, entry: Entry) {
  if (entry.method === method_stored) {
    yield* packedOf(at, entry)
    return
  }
  if (entry.method !== method_deflated) damaged()
  const inflate = createInflateRaw({ chunkSize: piece_bytes })
  const fed = (async () => {
    for (const piece of packedOf(at, entry)) {
      if (!inflate.write(piece)) await new Promise((go) => inflate.once("drain", go))
      if (inflate.destroyed) return
    }
    inflate.end()
  })()
  fed.catch((error: Error) => inflate.destroy(error))
  // Node says of what it unpacks that it is anything.
  for await (const piece of inflate) yield piece as Buffer
}

const copied = async (at: At, entry: Entry, bytes_max: number, take: (piece: Buffer) => void) => {
  if (entry.bytes > bytes_max) {
    unusable(`Its ${entry.name} has more than ${Math.round(bytes_max / 2 ** 20)} MB.`)
  }
  let bytes = 0
  let crc = 0
  for await (const piece of unpackedOf(at, entry)) {
    bytes += piece.length
    if (bytes > entry.bytes) damaged()
    crc = crc32(piece, crc)
    take(piece)
  }
  if (bytes !== entry.bytes || crc !== entry.crc) damaged()
}

/** Opens an archive. Throws a refusal where it does not hold together. */
export const openZip = (path: string): Zip => {
  const file = openSync(path, "r")
  const { size } = fstatSync(file)
  const at = reader(file, size)
  const entries = entriesOf(at, size)
  const entryOf = (name: string) => entries.find((entry) => entry.name === name)
  return {
    names: entries.map(({ name }) => name),
    read: async (name, bytes_max) => {
      const entry = entryOf(name)
      if (entry === undefined) return undefined
      const pieces: Array<Buffer> = []
      await copied(at, entry, bytes_max, (piece) => pieces.push(piece))
      return Buffer.concat(pieces)
    },
    extract: async (name, path, bytes_max) => {
      const entry = entryOf(name)
      if (entry === undefined) return false
      const into = openSync(path, "wx", 0o600)
      try {
        await copied(at, entry, bytes_max, (piece) => {
          for (let place = 0; place < piece.length; ) place += writeSync(into, piece, place)
        })
      } finally {
        closeSync(into)
      }
      return true
    },
    close: () => closeSync(file),
  }
}
