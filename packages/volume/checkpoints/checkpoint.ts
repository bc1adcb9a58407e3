/**
 * The checkpoint of a volume: what replaying the log up to some batch came to, so that a start
 * replays only what is behind it. It can be lost: the log alone is the truth.
 *
 * Two files take turns and are written in place, grown ahead of need (volume-checkpoint-room.ts),
 * so that a full disk has room for the next one too and the last one stands until then. Each is a
 * row of pieces, a multiple of a page long, with the checkpoint's number and a CRC32C of their own:
 * what is counted, as JSON, the images of the index and of the extents, an end.
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
/** A file is made longer than it needs to be by this factor, for the next ones. */
const spare_factor = 1.5
/** The length of a new file, in bytes: a checkpoint of two thousand blobs, and room for more. */
export const first_bytes = 128 * 1024
/** The longest piece, in bytes: an index writes pieces of some 256 KiB. */
const piece_bytes_max = 64 * 1024 * 1024

const sections = ["facts", "index", "extents", "end"] as const
type Section = (typeof sections)[number]

/** A log file as the checkpoint has it. */
export interface KnownLog {
  readonly number: number
  readonly generation: number
  readonly bytes: number
  readonly end: number
  readonly live_bytes: number
  readonly first_cursor: number
  readonly last_cursor: number
}

/** What a checkpoint says besides its images. */
export interface CheckpointFacts {
  /** From 1, one more each time. */
  readonly serial: number
  /** In hex. */
  readonly volume_id: string
  /** The highest generation that was given to a file. */
  readonly generation: number
  /** The last batch that it knows of. */
  readonly end: LogEnd
  readonly counters: Counters
  /** The log files in use; a file that is not among them is spare, or was used later. */
  readonly logs: ReadonlyArray<KnownLog>
  /** What maintenance wants to remember. */
  readonly notes: Readonly<Record<string, string>>
}

interface Images {
  readonly index: Iterable<Uint8Array>
  readonly extents: Iterable<Uint8Array>
}

export interface Checkpoint extends Images {
  readonly facts: CheckpointFacts
}

/** A checkpoint as it was read. */
interface ReadCheckpoint extends Checkpoint {
  readonly index: ReadonlyArray<Uint8Array>
  readonly extents: ReadonlyArray<Uint8Array>
}

/** The piece's parts; its CRC begins with that of the one before. */
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
 * The nonce makes two attempts differ from the first piece on: where an attempt with the same
 * serial was cut off before, no piece of it can follow one of the next attempt.
 */
const encodeFacts = (facts: CheckpointFacts) =>
  Buffer.from(
    JSON.stringify(
      { ...facts, nonce: randomBytes(nonce_bytes).toString("hex") },
      (_, value: unknown) => (typeof value === "bigint" ? `${value}` : value),
    ),
  )

const decodeFacts = (bytes: Buffer): CheckpointFacts => {
  // It is what `encodeFacts` wrote: its CRC holds.
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
    // Behind what is needed now are zeros, which are no piece.
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
 * Makes both files so long at least, of blocks that the disk has given, durably; makes them where
 * they are missing. What a file holds stays: zeros behind it are no piece. Rejects as the disk
 * does. Nobody may write to them meanwhile.
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

/** How long both files are, in bytes: what a checkpoint may take on a disk that is full. */
export const checkpointRoom = async (disk: VolumeDisk, dir: string) => {
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

/** Of one log file the facts, and of any file the notes, take less, in bytes of JSON. */
const facts_bytes_per_file = 512

/** What a checkpoint takes at most: `images` and `files` are how many there are. */
export const checkpointBytes = (
  image_bytes: number,
  { images, files }: { readonly images: number; readonly files: number },
) =>
  image_bytes +
  toPages(facts_bytes_per_file * (files + 2)) +
  (images + 2) * (toPages(1) + head_bytes)

/**
 * Writes checkpoint number `serial`, durably, in place of the last but one, asking for the images
 * piece by piece. Rejects as the disk does; the last one stands then.
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
 * The last checkpoint in a folder that holds; undefined where none does. `is_last` is false where
 * a later one may have been: files that this one names may be used for something else by now.
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
