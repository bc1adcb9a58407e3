/**
 * A volume's index: maps each id to the place of its newest record in the log. Pure, in memory, on
 * typed arrays, so that ten million blobs cost the garbage collector no work.
 *
 * Ids are hashes, so their first bits are uniformly distributed. A directory leads from those bits
 * to tables of at most 2,048 slots (extendible hashing): a table grows by half, and at the maximum
 * it is split by its next bit. So no growth is a long pause, and a listing sorts one table at a
 * time. A fixed number of tables would be either too large for few blobs, because each table has an
 * overhead, or too small for many.
 */
import type { BlobId } from "#schemas/blob-storage/blob.ts"
import {
  compareSlots,
  copyRange,
  countRange,
  fileOf,
  find,
  firstWord,
  headerAt,
  idAt,
  isFull,
  isHeld,
  type Key,
  kindOf,
  kinds,
  makeTable,
  type Packed,
  type Place,
  type PlaceKind,
  pack,
  placeAt,
  put,
  readEntry,
  readKey,
  removeAt,
  slot_bytes,
  slots_max,
  slotsOf,
  type Table,
  table_overhead_bytes,
  writeEntry,
} from "./table.ts"

export type { Place, PlaceKind } from "./table.ts"
export { isHeld } from "./table.ts"

/** The table of all ids that start with the first `depth` bits of `first`. */
interface Bucket {
  table: Table
  readonly depth: number
  /** The first word of the smallest id that belongs here. */
  readonly first: number
}

export type Entry = readonly [BlobId, Place]

export interface IndexCount {
  readonly blobs: number
  readonly tombstones: number
  readonly gone: number
  readonly shards: number
}

/** Maximum number of bits in the directory: 2^20 tables are enough for 10^9 blobs. */
const depth_max = 20
/** Size of a directory entry, in bytes. */
const pointer_bytes = 8
/** Entries per piece of an image: large enough for the disk, small enough for the event loop. */
const image_piece_entries = 8192
const word_end = 2 ** 32

/** Initial entries of a table when many are expected: half of what a table may hold. */
const table_entries = 900

/** Enough tables for the entries without a split. */
const firstBuckets = (seed: number, entries: number): Array<Bucket> => {
  const depth = entries <= table_entries ? 0 : Math.ceil(Math.log2(entries / table_entries))
  return Array.from({ length: 2 ** depth }, (_, number) => ({
    table: makeTable(seed, entries / 2 ** depth),
    depth,
    first: number * 2 ** (32 - depth),
  }))
}

/** The directory: `at` returns the bucket of a first word, `after` the next bucket. */
const makeDirectory = (seed: number, entries: number) => {
  let buckets = firstBuckets(seed, entries)
  let bits = Math.log2(buckets.length)
  let slots = buckets.reduce((sum, { table }) => sum + table.capacity, 0)
  let count = buckets.length

  const at = (word: number): Bucket => {
    // JavaScript treats a shift by 32 bits as a shift by 0.
    const bucket = buckets[bits === 0 ? 0 : word >>> (32 - bits)]
    if (!bucket) throw new Error(`the index has no table for ${word}`)
    return bucket
  }
  const widthOf = ({ depth }: Bucket) => 2 ** (32 - depth)
  const after = (bucket: Bucket) => {
    const end = bucket.first + widthOf(bucket)
    return end < word_end ? at(end) : undefined
  }
  const grow = (bucket: Bucket) => {
    const { table } = bucket
    const larger = copyRange(table, makeTable(seed, table.used + 1), 0, word_end)
    slots += larger.capacity - table.capacity
    bucket.table = larger
  }
  const split = (bucket: Bucket) => {
    if (bucket.depth === bits) {
      buckets = buckets.flatMap((one) => [one, one])
      bits += 1
    }
    const depth = bucket.depth + 1
    const width = 2 ** (32 - depth)
    const halves = [bucket.first, bucket.first + width].map((first): Bucket => {
      const half = makeTable(seed, countRange(bucket.table, first, first + width))
      slots += half.capacity
      return { table: copyRange(bucket.table, half, first, first + width), depth, first }
    })
    slots -= bucket.table.capacity
    count += 1
    for (const half of halves) {
      const from = half.first / 2 ** (32 - bits)
      buckets.fill(half, from, from + 2 ** (bits - depth))
    }
  }
  /** The bucket of a first word, with space for one more entry. */
  const bucketWithSpace = (word: number): Bucket => {
    const bucket = at(word)
    if (!isFull(bucket.table)) return bucket
    const is_splittable = bucket.table.capacity * 1.5 > slots_max && bucket.depth < depth_max
    if (is_splittable) split(bucket)
    else grow(bucket)
    return bucketWithSpace(word)
  }
  const bytes = () =>
    slots * slot_bytes + count * table_overhead_bytes + buckets.length * pointer_bytes
  return { at, after, bucketWithSpace, bytes }
}

type Directory = ReturnType<typeof makeDirectory>

/**
 * The buckets in the order of their ids. If a bucket is split during the iteration, the next one
 * starts where it ended.
 */
function* bucketsFrom({ at, after }: Directory, first: number) {
  for (let bucket: Bucket | undefined = at(first); bucket; bucket = after(bucket)) {
    yield bucket
  }
}

const entriesOf = (table: Table, wanted: (header: number) => boolean) =>
  slotsOf(table)
    .filter((slot) => wanted(headerAt(table, slot)))
    .map((slot): Entry => [idAt(table, slot), placeAt(table, slot)])

/** All entries that match, a table at a time or one by one. */
const makeScans = (directory: Directory) => {
  const slicesOf = function* (wanted: (header: number) => boolean) {
    for (const { table } of bucketsFrom(directory, 0)) {
      yield entriesOf(table, wanted)
    }
  }
  const entries = function* (wanted: (header: number) => boolean): Generator<Entry, void> {
    for (const slice of slicesOf(wanted)) yield* slice
  }
  return { slicesOf, entries }
}

/** The first words of ids that can have this prefix. */
const firstWordRange = (prefix: string) => {
  const digits = prefix.slice(0, 8)
  return [
    Number.parseInt(digits.padEnd(8, "0"), 16),
    Number.parseInt(digits.padEnd(8, "f"), 16),
  ] as const
}

/** Which ids to list, in order. `first` and `last` are bounds of their first words. */
interface IdFilter {
  readonly first: number
  readonly last: number
  readonly matchesKind: (kind: PlaceKind) => boolean
  readonly matches: (id: BlobId) => boolean
}

const listFrom = (
  directory: Directory,
  { first, last, matchesKind, matches }: IdFilter,
  limit: number,
) => {
  const ids: Array<BlobId> = []
  if (first > last) return ids
  for (const { table, first: begin } of bucketsFrom(directory, first)) {
    if (begin > last) break
    const slots = slotsOf(table).filter((slot) => {
      const word = firstWord(table, slot)
      return word >= first && word <= last && matchesKind(kindOf(headerAt(table, slot)))
    })
    for (const slot of slots.sort((one, other) => compareSlots(table, one, other))) {
      if (ids.length >= limit) return ids
      const id = idAt(table, slot)
      if (matches(id)) ids.push(id)
    }
  }
  return ids
}

const firstAfter = (after_id: string) => (after_id === "" ? 0 : firstWordRange(after_id)[0])

/** Stored blobs, whole or as a shard, with a prefix. */
const withPrefix = (after_id: string, prefix: string): IdFilter => {
  const [lowest, last] = firstWordRange(prefix)
  return {
    first: Math.max(lowest, firstAfter(after_id)),
    last,
    matchesKind: (kind) => isHeld({ kind }),
    matches: (id) => id > after_id && id.startsWith(prefix),
  }
}

/** Stored and deleted blobs between two ids. */
const between = (after_id: string, until_id: string): IdFilter => ({
  first: firstAfter(after_id),
  last: until_id === "" ? word_end - 1 : firstWordRange(until_id)[0],
  matchesKind: (kind) => kind !== "gone",
  matches: (id) => id > after_id && (until_id === "" || id < until_id),
})

/**
 * A snapshot of the tables, for an image that is made piece by piece while they change. A table is
 * copied before it changes, unless its piece is already made.
 */
const makeSnapshots = () => {
  let snapshots = new Map<Table, Table>()
  return {
    /** Called before a table changes. A table that is replaced stays as it is. */
    beforeChange: (table: Table) => {
      if (snapshots.get(table) === table)
        snapshots.set(table, { ...table, words: table.words.slice() })
    },
    /** Takes a snapshot, and returns its tables one by one. Ends an earlier snapshot. */
    take: (tables: ReadonlyArray<Table>) => {
      const mine = new Map(tables.map((table) => [table, table]))
      snapshots = mine
      return function* () {
        for (const table of tables) {
          const snapshot = mine.get(table)
          if (snapshots !== mine || !snapshot) throw new Error("another image was started")
          mine.delete(table)
          yield snapshot
        }
      }
    },
  }
}

const pieceOf = (tables: ReadonlyArray<Table>, entries: number) => {
  const piece = new DataView(new ArrayBuffer(entries * slot_bytes))
  let position = 0
  for (const table of tables) {
    for (const slot of slotsOf(table)) {
      writeEntry(table, slot, piece, position)
      position += slot_bytes
    }
  }
  return new Uint8Array(piece.buffer)
}

/** Entries as bytes. Each piece is made synchronously. */
function* imageOf(snapshots: Iterable<Table>): Generator<Uint8Array> {
  let tables: Array<Table> = []
  let entries = 0
  for (const table of snapshots) {
    tables.push(table)
    entries += table.used
    if (entries < image_piece_entries) continue
    yield pieceOf(tables, entries)
    tables = []
    entries = 0
  }
  if (entries > 0) yield pieceOf(tables, entries)
}

const imageSizeOf = ({ blobs, tombstones, gone, shards }: IndexCount) => {
  const entries = blobs + tombstones + gone + shards
  return { bytes: entries * slot_bytes, images: Math.floor(entries / image_piece_entries) + 1 }
}

/** Regroups the images into pieces of whole entries. */
function* wholeEntries(images: ReadonlyArray<Uint8Array>) {
  let rest: Uint8Array<ArrayBufferLike> = new Uint8Array(0)
  for (const image of images) {
    const bytes = rest.length === 0 ? image : Buffer.concat([rest, image])
    const whole = bytes.length - (bytes.length % slot_bytes)
    rest = bytes.subarray(whole)
    yield new DataView(bytes.buffer, bytes.byteOffset, whole)
  }
  if (rest.length > 0) throw new RangeError("an index image ends within an entry")
}

const count_names = ["blobs", "tombstones", "gone", "shards"] as const

/**
 * An index, empty or from the images of an earlier one. Uploaders must not know `seed`: it
 * determines where a table looks for an id. Throws RangeError if the images are invalid.
 */
export const makeIndex = (images: ReadonlyArray<Uint8Array> = [], seed = 0) => {
  const image_bytes = images.reduce((sum, { length }) => sum + length, 0)
  const directory = makeDirectory(seed, image_bytes / slot_bytes)
  const key: Key = new Uint32Array(4)
  const counts = { blobs: 0, tombstones: 0, gone: 0, shards: 0 }

  const note = (header: number, by: number) => {
    const name = count_names[header & 3]
    if (header !== 0 && name !== undefined) counts[name] += by
  }
  const snapshots = makeSnapshots()
  const setKey = (packed: Packed) => {
    const { table } = directory.bucketWithSpace(key[0] ?? 0)
    snapshots.beforeChange(table)
    note(put(table, key, packed), -1)
    note(packed[0], 1)
  }
  for (const entries of wholeEntries(images)) {
    for (let position = 0; position < entries.byteLength; position += slot_bytes) {
      const packed = readEntry(entries, position, key)
      if (fileOf(packed[0]) === 0 || kinds[packed[0] & 3] === undefined) {
        throw new RangeError("an index image has an entry without a position")
      }
      setKey(packed)
    }
  }
  const { slicesOf, entries } = makeScans(directory)
  return {
    find: (id: BlobId): Place | undefined => {
      readKey(id, key)
      const { table } = directory.at(key[0] ?? 0)
      const slot = find(table, key)
      return slot < 0 ? undefined : placeAt(table, slot)
    },
    set: (id: BlobId, place: Place) => {
      readKey(id, key)
      setKey(pack(place))
    },
    remove: (id: BlobId) => {
      readKey(id, key)
      const { table } = directory.at(key[0] ?? 0)
      const slot = find(table, key)
      if (slot < 0) return
      snapshots.beforeChange(table)
      note(headerAt(table, slot), -1)
      removeAt(table, slot)
    },
    /** Stored blobs in byte order after `after_id` ("" for the first) with this prefix. */
    list: (after_id: string, prefix: string, limit: number) =>
      listFrom(directory, withPrefix(after_id, prefix), limit),
    /** Blobs and tombstones in byte order between two ids, exclusive ("" for no bound). */
    between: (after_id: string, until_id: string, limit: number) =>
      listFrom(directory, between(after_id, until_id), limit),
    /**
     * All entries. The index may change during the iteration: each entry is returned as it is when
     * reached.
     */
    entries: () => entries(() => true),
    /** Entries whose record is in a file. Scans the whole index, which may take long. */
    inFile: (file: number) => entries((header) => fileOf(header) === file),
    /** Like `inFile`, one table at a time, so that other work can run in between. */
    slices: (file: number) => slicesOf((header) => fileOf(header) === file),
    count: (): IndexCount => ({ ...counts }),
    /** Upper bound of an image's size, in bytes and pieces. */
    imageSize: () => imageSizeOf(counts),
    /** Memory in use, in bytes. */
    bytes: directory.bytes,
    /** A snapshot for `makeIndex`; later changes do not affect it. Only one image at a time. */
    image: (): Iterable<Uint8Array> => {
      const tables = Array.from(bucketsFrom(directory, 0), ({ table }) => table)
      return imageOf(snapshots.take(tables)())
    },
  }
}
