/**
 * One table of a volume's index: ids and places in an open-addressing hash table on one typed
 * array. The fourth words of the ids are together at the front, as tags, so that a search compares
 * sixteen slots in one cache line. The lowest bit of a tag is always set, which marks a used slot;
 * the actual bit is stored with the place.
 */
import type { BlobId } from "#schemas/blob-storage/blob.ts"

/**
 * Kind of the newest record of an id. `gone`: the copy was quarantined, lost or released. `shard`:
 * the copy is a shard, not the whole blob.
 */
export type PlaceKind = "blob" | "tombstone" | "gone" | "shard"

/**
 * Where a record is: number of its log file, from 1 to 2^28 - 1; position of its head in bytes, a
 * multiple of 8 below 32 GiB; length of the record, below 4 GiB.
 */
export interface Place {
  readonly file: number
  readonly position: number
  readonly bytes: number
  readonly kind: PlaceKind
  readonly is_large: boolean
}

/** An id as four big-endian words. */
export type Key = Uint32Array<ArrayBuffer>

/** A place as the three words of a slot. */
export type Packed = readonly [header: number, position_8: number, bytes: number]

export interface Table {
  /** `capacity` tags, then the other six words of each slot. */
  readonly words: Uint32Array<ArrayBuffer>
  readonly capacity: number
  /** Mixed into the home slot of an id. */
  readonly seed: number
  used: number
}

const slot_words = 7
const rest_words = slot_words - 1
export const slot_bytes = 4 * slot_words
/** Overhead of V8's array, its buffer, the table's object and malloc: measured at 250. */
export const table_overhead_bytes = 256

const slots_min = 16
const growth = 1.5
/**
 * Maximum load factor. Above it an unsuccessful search, which every new blob needs, becomes long.
 */
const load_max = 0.8
/** Maximum load factor of a table made for known entries. */
const load_fresh_max = 0.7
/**
 * Maximum size, above which a table is split: 57 KiB, and 1,638 entries to sort for a page of a
 * listing.
 */
export const slots_max = 2048

export const kinds: ReadonlyArray<PlaceKind> = ["blob", "tombstone", "gone", "shard"]

const digit_values = new Uint8Array(128)
for (const [value, digit] of Array.from("0123456789abcdef").entries()) {
  digit_values[digit.charCodeAt(0)] = value
}

/** Decodes 32 lower-case hex digits into `key`. */
export const readKey = (id: string, key: Key) => {
  for (let word = 0, digit = 0; word < 4; word++) {
    let value = 0
    for (const end = digit + 8; digit < end; digit++) {
      value = (value << 4) | (digit_values[id.charCodeAt(digit) & 127] ?? 0)
    }
    key[word] = value
  }
  return key
}

const hexWord = (word: number) => word.toString(16).padStart(8, "0")

const file_max = 2 ** 28 - 1
const position_bytes_end = 2 ** 35

/** Encodes a place. Throws RangeError if a slot cannot hold it. */
export const pack = ({ file, position, bytes, kind, is_large }: Place): Packed => {
  const is_file = Number.isInteger(file) && file > 0 && file <= file_max
  const is_position = position % 8 === 0 && position >= 0 && position < position_bytes_end
  if (!is_file || !is_position || bytes >>> 0 !== bytes) {
    throw new RangeError(`an index cannot store the position ${file}:${position}+${bytes}`)
  }
  const header = ((file << 4) | (is_large ? 4 : 0) | kinds.indexOf(kind)) >>> 0
  return [header, position / 8, bytes]
}

export const fileOf = (header: number) => header >>> 4
export const kindOf = (header: number): PlaceKind => kinds[header & 3] ?? "gone"

/** Whether the whole blob, or a shard of it, is stored. */
export const isHeld = <P extends { readonly kind: PlaceKind }>(
  place: P | undefined,
): place is P & { readonly kind: "blob" | "shard" } =>
  place?.kind === "blob" || place?.kind === "shard"

export const unpack = (header: number, position_8: number, bytes: number): Place => ({
  file: fileOf(header),
  position: position_8 * 8,
  bytes,
  kind: kindOf(header),
  is_large: (header & 4) !== 0,
})

/** A table for this many entries, with spare slots. */
export const makeTable = (seed: number, entries: number): Table => {
  let capacity = slots_min
  while (capacity * load_fresh_max < entries) capacity = Math.ceil(capacity * growth)
  return { words: new Uint32Array(slot_words * capacity), capacity, seed, used: 0 }
}

export const isFull = ({ used, capacity }: Table) => used + 1 > capacity * load_max

const at = (words: Uint32Array, position: number) => words[position] ?? 0

/** Offset of the other six words of a slot: three of the id, three of the place. */
const restOf = ({ capacity }: Table, slot: number) => capacity + rest_words * slot

/** The first word of a slot's id: its order in a listing, except for rare ties. */
export const firstWord = (table: Table, slot: number) => at(table.words, restOf(table, slot))
export const headerAt = (table: Table, slot: number) => at(table.words, restOf(table, slot) + 3)

const isEmpty = ({ words }: Table, slot: number) => at(words, slot) === 0

const tagOf = (word_3: number) => (word_3 | 1) >>> 0
/** The lowest bit of the fourth word, as stored with the place. */
const lastBitOf = (word_3: number) => (word_3 & 1) << 3
const last_bit = 8
/** The fourth word of a slot's id. */
const lastWord = (tag: number, header: number) => (tag & ~1) | ((header & last_bit) >>> 3)

/**
 * The slot where the search for an id starts. An uploader can choose about twenty of the first bits
 * of a hash, but cannot predict their slot without the seed.
 */
const homeOf = ({ seed, capacity }: Table, word_1: number, word_2: number) => {
  const once = Math.imul(word_1 ^ seed, 0x9e37_79b1)
  const twice = Math.imul(once ^ (once >>> 15) ^ word_2, 0x85eb_ca6b)
  const mixed = (twice ^ (twice >>> 13)) >>> 0
  return Math.floor((mixed * capacity) / 2 ** 32)
}

/** The slot of an id, or the complement of the empty slot where it belongs. */
const search = (table: Table, key: Key) => {
  const { words, capacity } = table
  const word_0 = at(key, 0)
  const word_1 = at(key, 1)
  const word_2 = at(key, 2)
  const expected = tagOf(at(key, 3))
  const bit = lastBitOf(at(key, 3))
  for (let slot = homeOf(table, word_1, word_2); ; slot = slot + 1 === capacity ? 0 : slot + 1) {
    const tag = at(words, slot)
    if (tag === expected) {
      const rest = restOf(table, slot)
      const is_same =
        at(words, rest) === word_0 &&
        at(words, rest + 1) === word_1 &&
        at(words, rest + 2) === word_2
      if (is_same && (at(words, rest + 3) & last_bit) === bit) return slot
    }
    if (tag === 0) return ~slot
  }
}

/** The slot of an id; negative if it is not in the table. */
export const find = (table: Table, key: Key) => search(table, key)

export const placeAt = (table: Table, slot: number): Place => {
  const rest = restOf(table, slot)
  const { words } = table
  return unpack(at(words, rest + 3), at(words, rest + 4), at(words, rest + 5))
}

/** Sets the place of an id. Returns the previous `header`, or 0. The table must not be full. */
export const put = (table: Table, key: Key, [header, position_8, bytes]: Packed) => {
  const found = search(table, key)
  const slot = found < 0 ? ~found : found
  const { words } = table
  const rest = restOf(table, slot)
  const before = at(words, rest + 3)
  words[slot] = tagOf(key[3] ?? 0)
  words[rest] = key[0] ?? 0
  words[rest + 1] = key[1] ?? 0
  words[rest + 2] = key[2] ?? 0
  words[rest + 3] = header | lastBitOf(key[3] ?? 0)
  words[rest + 4] = position_8
  words[rest + 5] = bytes
  if (found < 0) table.used += 1
  return before
}

/** Empties a slot, and moves later entries that would no longer be found. */
export const removeAt = (table: Table, slot: number) => {
  const { words, capacity } = table
  let hole = slot
  for (let next = (hole + 1) % capacity; !isEmpty(table, next); next = (next + 1) % capacity) {
    const rest = restOf(table, next)
    const home = homeOf(table, at(words, rest + 1), at(words, rest + 2))
    const from_home = (next - home + capacity) % capacity
    const from_hole = (next - hole + capacity) % capacity
    if (from_home < from_hole) continue
    words[hole] = at(words, next)
    words.copyWithin(restOf(table, hole), rest, rest + rest_words)
    hole = next
  }
  words[hole] = 0
  words.fill(0, restOf(table, hole), restOf(table, hole) + rest_words)
  table.used -= 1
}

/** The used slots, in no particular order. */
export const slotsOf = (table: Table) => {
  const slots: Array<number> = []
  for (let slot = 0; slot < table.capacity; slot++) if (!isEmpty(table, slot)) slots.push(slot)
  return slots
}

const lastWordAt = (table: Table, slot: number) =>
  lastWord(at(table.words, slot), headerAt(table, slot)) >>> 0

/** Compares the ids of two slots: negative, zero or positive. */
export const compareSlots = (table: Table, one: number, other: number) => {
  const { words } = table
  for (let word = 0; word < 3; word++) {
    const order = at(words, restOf(table, one) + word) - at(words, restOf(table, other) + word)
    if (order !== 0) return order
  }
  return lastWordAt(table, one) - lastWordAt(table, other)
}

/** The id of a slot, in lower-case hex. */
export const idAt = (table: Table, slot: number) => {
  const { words } = table
  const rest = restOf(table, slot)
  const front = hexWord(at(words, rest)) + hexWord(at(words, rest + 1))
  // Only ids were decoded into these words.
  return (front + hexWord(at(words, rest + 2)) + hexWord(lastWordAt(table, slot))) as BlobId
}

/** Encodes a slot's entry for an image: seven little-endian words. */
export const writeEntry = (table: Table, slot: number, into: DataView, position: number) => {
  const { words } = table
  const rest = restOf(table, slot)
  for (let word = 0; word < rest_words; word++) {
    into.setUint32(position + 4 * word, at(words, rest + word), true)
  }
  into.setUint32(position + 4 * rest_words, at(words, slot), true)
}

/** Decodes an entry of an image. */
export const readEntry = (from: DataView, position: number, key: Key): Packed => {
  const word = (number: number) => from.getUint32(position + 4 * number, true)
  key[0] = word(0)
  key[1] = word(1)
  key[2] = word(2)
  key[3] = lastWord(word(6), word(3))
  return [word(3) & ~last_bit, word(4), word(5)]
}

/**
 * Copies the entries with a first word from `lowest` up to `end` (exclusive) to a table that has
 * space for them and holds none of them.
 */
export const copyRange = (from: Table, into: Table, lowest: number, end: number) => {
  const { words } = from
  const target = into.words
  for (let slot = 0; slot < from.capacity; slot++) {
    const rest = restOf(from, slot)
    const first = at(words, rest)
    if (first < lowest || first >= end || at(words, rest + 3) === 0) continue
    let free = homeOf(into, at(words, rest + 1), at(words, rest + 2))
    while (!isEmpty(into, free)) free = free + 1 === into.capacity ? 0 : free + 1
    const place = restOf(into, free)
    target[free] = at(words, slot)
    for (let word = 0; word < rest_words; word++) target[place + word] = at(words, rest + word)
    into.used += 1
  }
  return into
}

/** Number of entries with a first word from `lowest` up to `end` (exclusive). */
export const countRange = (table: Table, lowest: number, end: number) => {
  let count = 0
  for (let slot = 0; slot < table.capacity; slot++) {
    const first = firstWord(table, slot)
    if (first >= lowest && first < end && headerAt(table, slot) !== 0) count += 1
  }
  return count
}
