/**
 * The checkpoint of a volume: its state at some batch, so that startup replays only later ones. It
 * may be lost: the log alone is authoritative.
 *
 * Two files alternate. They are written in place and grown ahead of need (`space.ts`), so that a
 * full disk has space for the next checkpoint, and the last one stays valid until then. A file is a
 * sequence of pieces, each a multiple of a page with the checkpoint's serial and a CRC32C: the
 * facts as JSON, the images of the index and of the extents, and an end.
 */
import { randomBytes } from "node:crypto"
import { join } from "node:path"
import { crc32c } from "@node-rs/crc32"
import type { VolumeDisk, VolumeFile } from "../disk.ts"
import { readNumber, toPages, writeNumber } from "../log/format.ts"
import { fillZeros } from "../log/segments.ts"
import type { Counters } from "../log/state.ts"
import type { LogEnd } from "../log/writer.ts"

const names = ["checkpoint-1", "checkpoint-2"] as const
const format_version = 1
const magic = Buffer.from("ALMCHECK", "latin1")
const nonce_bytes = 8
const head_bytes = 40
/** Factor by which a file is longer than it needs to be, for later checkpoints. */
const spare_factor = 1.5
/** Length of a new file, in bytes: a checkpoint of two thousand blobs, with room to grow. */
export const first_bytes = 128 * 1024
/** Maximum length of a piece, in bytes. An index writes pieces of about 256 KiB. */
const piece_bytes_max = 64 * 1024 * 1024

const sections = ["facts", "index", "extents", "end"] as const
type Section = (typeof sections)[number]

/** A log file, as of the checkpoint. */
export interface KnownLog {
  readonly number: number
  readonly generation: number
  readonly bytes: number
  readonly end: number
  readonly live_bytes: number
  readonly first_cursor: number
  readonly last_cursor: number
}

/** The contents of a checkpoint, except its images. */
export interface CheckpointFacts {
  /** From 1, rising by one. */
  readonly serial: number
  /** In hex. */
  readonly volume_id: string
  /** The highest generation of any file. */
  readonly generation: number
  /** The last batch that it covers. */
  readonly end: LogEnd
  readonly counters: Counters
  /** The log files in use. Any other file was spare, or was taken into use later. */
  readonly logs: ReadonlyArray<KnownLog>
  /** State of background tasks. */
  readonly notes: Readonly<Record<string, string>>
}

interface Images {
  readonly index: Iterable<Uint8Array>
  readonly extents: Iterable<Uint8Array>
}

export interface Checkpoint extends Images {
  readonly facts: CheckpointFacts
}

/** A checkpoint as read. */
interface ReadCheckpoint extends Checkpoint {
  readonly index: ReadonlyArray<Uint8Array>
  readonly extents: ReadonlyArray<Uint8Array>
}

/** Encodes a piece. Its CRC is seeded with that of the previous piece. */
const pieceOf = (
  [serial, number, previous_crc]: readonly [number, number, number],
  section: Section,
  bytes: Uint8Array,
) => {
  const head = Buffer.alloc(head_bytes)
  magic.copy(head)
  head.writeUInt32LE(format_version, 8)
  head.writeUInt32LE(sections.indexOf(section), 12)
  head.writeUInt32LE(bytes.length, 16)
  head.writeUInt32LE(number, 20)
  writeNumber(head, serial, 24)
  const crc = crc32c(bytes, crc32c(head.subarray(0, 36), previous_crc))
  head.writeUInt32LE(crc, 36)
  const padding = toPages(head_bytes + bytes.length) - head_bytes - bytes.length
  return { parts: [head, bytes, Buffer.alloc(padding)], crc }
}

/**
 * The nonce makes two attempts differ from the first piece on: no piece left by an interrupted
 * attempt with the same serial can follow a piece of the next attempt.
 */
const encodeFacts = (facts: CheckpointFacts) =>
  Buffer.from(
    JSON.stringify(
      { ...facts, nonce: randomBytes(nonce_bytes).toString("hex") },
      (_, value: unknown) => (typeof value === "bigint" ? `${value}` : value),
    ),
  )

const decodeFacts = (bytes: Buffer): CheckpointFacts => {
  // Written by `encodeFacts`: the CRC matches.
  const facts = JSON.parse(bytes.toString()) as CheckpointFacts
  return { ...facts, counters: { ...facts.counters, last_at: BigInt(facts.counters.last_at) } }
}

const makePieces = (file: VolumeFile, serial: number) => {
  let position = 0
  let number = 0
  let previous_crc = 0
  const write = async (section: Section, bytes: Uint8Array) => {
    const end = position + toPages(head_bytes + bytes.length)
    const size = await file.size()
    // The zeros after the needed length are not a valid piece.
    if (end > size) await fillZeros(file, size, toPages(end * spare_factor))
    const { parts, crc } = pieceOf([serial, number, previous_crc], section, bytes)
    await file.write(parts, position)
    previous_crc = crc
    position = end
    number += 1
  }
  return write
}

const openOrMake = async (disk: VolumeDisk, dir: string, name: string) => {
  if ((await disk.names(dir)).includes(name)) return disk.open(join(dir, name))
  const file = await disk.create(join(dir, name))
  await disk.syncFolder(dir)
  return file
}

/**
 * Grows both files to at least `bytes` of allocated blocks, durably, and creates them if needed.
 * Keeps their contents: zeros after them are not a valid piece. Rejects with the disk's error.
 * Nothing else may write to the files during the call.
 */
export const growCheckpointFiles = async (disk: VolumeDisk, dir: string, bytes: number) => {
  for (const name of names) {
    const file = await openOrMake(disk, dir, name)
    try {
      const size = await file.size()
      if (size < bytes) await fillZeros(file, size, toPages(bytes))
    } finally {
      await file.close()
    }
  }
}

/** Length of the shorter file, in bytes: the space of a checkpoint on a full disk. */
export const checkpointFileBytes = async (disk: VolumeDisk, dir: string) => {
  const present = await disk.names(dir)
  let bytes = Number.POSITIVE_INFINITY
  for (const name of names) {
    if (!present.includes(name)) return 0
    const file = await disk.open(join(dir, name))
    try {
      bytes = Math.min(bytes, await file.size())
    } finally {
      await file.close()
    }
  }
  return bytes
}

/** Upper bound of the facts of a log file, and of the notes of any file, in bytes of JSON. */
const facts_bytes_per_file = 512

/** Upper bound of a checkpoint's size. `images` and `files` are numbers. */
export const checkpointBytes = (
  image_bytes: number,
  { images, files }: { readonly images: number; readonly files: number },
) =>
  image_bytes +
  toPages(facts_bytes_per_file * (files + 2)) +
  (images + 2) * (toPages(1) + head_bytes)

/**
 * Writes the checkpoint of this serial, durably, over the older of the two. Requests the images
 * piece by piece. Rejects with the disk's error; the last checkpoint then stays valid.
 */
export const writeCheckpoint = async (
  disk: VolumeDisk,
  dir: string,
  facts: CheckpointFacts,
  images: Images,
) => {
  const { serial } = facts
  const file = await openOrMake(disk, dir, names[serial % 2 === 1 ? 0 : 1])
  try {
    const write = makePieces(file, serial)
    await write("facts", encodeFacts(facts))
    for (const image of images.index) await write("index", image)
    for (const image of images.extents) await write("extents", image)
    await write("end", new Uint8Array(0))
    await file.datasync()
  } finally {
    await file.close()
  }
}

const readPiece = async (
  file: VolumeFile,
  position: number,
  [number, previous_crc]: readonly [number, number],
) => {
  const head = Buffer.from(await file.read(position, head_bytes))
  if (head.length < head_bytes || !head.subarray(0, 8).equals(magic)) return undefined
  const length = head.readUInt32LE(16)
  const is_known = head.readUInt32LE(8) === format_version && head.readUInt32LE(20) === number
  if (!is_known || length > piece_bytes_max) return undefined
  const bytes = await file.read(position + head_bytes, length)
  const crc = crc32c(bytes, crc32c(head.subarray(0, 36), previous_crc))
  const section = sections[head.readUInt32LE(12)]
  if (bytes.length < length || section === undefined || crc !== head.readUInt32LE(36)) {
    return undefined
  }
  const serial = readNumber(head, 24)
  return {
    section,
    serial,
    crc,
    bytes: Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength),
  }
}

const readPieces = async (file: VolumeFile): Promise<ReadCheckpoint | undefined> => {
  const index: Array<Uint8Array> = []
  const extents: Array<Uint8Array> = []
  let facts: CheckpointFacts | undefined
  let position = 0
  let previous_crc = 0
  for (let number = 0; ; number++) {
    const piece = await readPiece(file, position, [number, previous_crc])
    if (!piece) return undefined
    const { section, serial, bytes } = piece
    previous_crc = piece.crc
    if (facts && serial !== facts.serial) return undefined
    position += toPages(head_bytes + bytes.length)
    if (section === "end") return facts && { facts, index, extents }
    if (section === "facts") facts = decodeFacts(bytes)
    else if (section === "index") index.push(bytes)
    else extents.push(bytes)
  }
}

const readOne = async (disk: VolumeDisk, path: string) => {
  const file = await disk.open(path)
  try {
    return await readPieces(file)
  } finally {
    await file.close()
  }
}

/**
 * Reads the last valid checkpoint of a folder; undefined if there is none. `is_last` is false if a
 * later one may have existed; files that this one names may have been reused since then.
 */
export const readCheckpoint = async (disk: VolumeDisk, dir: string) => {
  const present = await disk.names(dir)
  const found: Array<ReadCheckpoint> = []
  for (const name of names.filter((one) => present.includes(one))) {
    const checkpoint = await readOne(disk, join(dir, name))
    if (checkpoint) found.push(checkpoint)
  }
  const [last] = found.sort((one, other) => other.facts.serial - one.facts.serial)
  const is_last = found.length === names.length
  return last && { checkpoint: last, is_last }
}
