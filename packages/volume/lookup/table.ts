/**
 * One sub-table of a volume's index: identifiers and their places in an open-addressing table on
 * one typed array. The fourth words of the identifiers stand together in front, as tags, so that a
 * search looks at sixteen slots in one line of the processor's cache. A tag's lowest bit is set in
 * any case, which tells a slot that is used; the word's own is kept with the place.
 */
import type { BlobId } from "#schemas/blob-storage/blob.ts"

/**
 * What the newest record of an identifier is; `gone` is a copy that was quarantined, lost or let
 * go, `shard` one that is not the whole blob.
 */
export type PlaceKind = "blob" | "tombstone" | "gone" | "shard"

/**
 * Where a record is: log file number from 1 to 2^28 - 1; position of its head in bytes, a multiple
 * of 8 below 32 GiB; bytes of head and inline payload, below 4 GiB.
 */
export interface Place {
  readonly file: number
  readonly position: number
  readonly bytes: number
  readonly kind: PlaceKind
  readonly is_large: boolean
}

/** An identifier as four big-endian words. */
export type Key = Uint32Array<ArrayBuffer>

/** A place as the three words that a slot holds of it. */
export type Packed = readonly [what: number, position_8: number, bytes: number]

export interface Table {
  /** `capacity` tags, then `capacity` times the other six words of a slot. */
  readonly words: Uint32Array<ArrayBuffer>
  readonly capacity: number
  /** Mixed into where a slot is looked for first. */
  readonly seed: number
  used: number
}

const slot_words = 7
const rest_words = slot_words - 1
export const slot_bytes = 4 * slot_words
/** V8's array, its buffer and the table's own object, and what malloc adds: measured at 250. */
export const table_overhead_bytes = 256

const slots_min = 16
const growth = 1.5
/** Used slots of all: above it unsuccessful searches, which each new blob is, become long. */
const load_max = 0.8
/** A table that is made for known entries is filled no further than this. */
const load_fresh_max = 0.7
/** Above this a table is split: 57 KiB, and 1,638 entries to sort for a page of a list. */
export const slots_max = 2048

export const kinds: ReadonlyArray<PlaceKind> = ["blob", "tombstone", "gone", "shard"]

const digit_values = new Uint8Array(128)
for (const [value, digit] of Array.from("0123456789abcdef").entries()) {
  digit_values[digit.charCodeAt(0)] = value
}

/** Takes 32 lower-case hex digits apart, into `key`. */
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

/** Throws RangeError where a place is beyond what a slot can hold. */
export const pack = ({ file, position, bytes, kind, is_large }: Place): Packed => {
  const is_file = Number.isInteger(file) && file > 0 && file <= file_max
  const is_position = position % 8 === 0 && position >= 0 && position < position_bytes_end
  if (!is_file || !is_position || bytes >>> 0 !== bytes) {
    throw new RangeError(`an index holds no place ${file}:${position}+${bytes}`)
  }
  const what = ((file << 4) | (is_large ? 4 : 0) | kinds.indexOf(kind)) >>> 0
  return [what, position / 8, bytes]
}

export const fileOf = (what: number) => what >>> 4
export const kindOf = (what: number): PlaceKind => kinds[what & 3] ?? "gone"

/** Whether all bytes of the blob are there, or a shard of it. */
export const isHeld = <P extends { readonly kind: PlaceKind }>(
  place: P | undefined,
): place is P & { readonly kind: "blob" | "shard" } =>
  place?.kind === "blob" || place?.kind === "shard"

export const unpack = (what: number, position_8: number, bytes: number): Place => ({
  file: fileOf(what),
  position: position_8 * 8,
  bytes,
  kind: kindOf(what),
  is_large: (what & 4) !== 0,
})

/** A table for so many entries, and some more. */
export const makeTable = (seed: number, entries: number): Table => {
  let capacity = slots_min
  while (capacity * load_fresh_max < entries) capacity = Math.ceil(capacity * growth)
  return { words: new Uint32Array(slot_words * capacity), capacity, seed, used: 0 }
}

export const isFull = ({ used, capacity }: Table) => used + 1 > capacity * load_max

const at = (words: Uint32Array, position: number) => words[position] ?? 0

/** Where the other six words of a slot begin: three of the identifier, three of the place. */
const restOf = ({ capacity }: Table, slot: number) => capacity + rest_words * slot

/** The first word of the slot's identifier: its order in a list, but for rare ties. */
export const firstWord = (table: Table, slot: number) => at(table.words, restOf(table, slot))
export const whatAt = (table: Table, slot: number) => at(table.words, restOf(table, slot) + 3)

const isEmpty = ({ words }: Table, slot: number) => at(words, slot) === 0

const tagOf = (word_3: number) => (word_3 | 1) >>> 0
/** The lowest bit of the fourth word, as it stands beside the place. */
const lastBitOf = (word_3: number) => (word_3 & 1) << 3
const last_bit = 8
/** The fourth word of the slot's identifier. */
const lastWord = (tag: number, what: number) => (tag & ~1) | ((what & last_bit) >>> 3)

/**
 * The slot that an identifier is looked for in first. Whoever uploads can choose bytes whose hash
 * begins as they like, some twenty bits of it; not what an unknown seed makes of it.
 */
const homeOf = ({ seed, capacity }: Table, word_1: number, word_2: number) => {
  const once = Math.imul(word_1 ^ seed, 0x9e37_79b1)
  const twice = Math.imul(once ^ (once >>> 15) ^ word_2, 0x85eb_ca6b)
  const mixed = (twice ^ (twice >>> 13)) >>> 0
  return Math.floor((mixed * capacity) / 2 ** 32)
}

/** The identifier's slot, or the complement of the empty one where it belongs. */
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

/** The identifier's slot; below 0 where it is not in the table. */
export const find = (table: Table, key: Key) => search(table, key)

export const placeAt = (table: Table, slot: number): Place => {
  const rest = restOf(table, slot)
  const { words } = table
  return unpack(at(words, rest + 3), at(words, rest + 4), at(words, rest + 5))
}

/** Sets the place of an identifier; answers what was there before, or 0. The table is not full. */
export const put = (table: Table, key: Key, [what, position_8, bytes]: Packed) => {
  const found = search(table, key)
  const slot = found < 0 ? ~found : found
  const { words } = table
  const rest = restOf(table, slot)
  const before = at(words, rest + 3)
  words[slot] = tagOf(key[3] ?? 0)
  words[rest] = key[0] ?? 0
  words[rest + 1] = key[1] ?? 0
  words[rest + 2] = key[2] ?? 0
  words[rest + 3] = what | lastBitOf(key[3] ?? 0)
  words[rest + 4] = position_8
  words[rest + 5] = bytes
  if (found < 0) table.used += 1
  return before
}

/** Empties a slot and moves those behind it that would not be found any more. */
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

/** The slots that hold something, in no order. */
export const slotsOf = (table: Table) => {
  const slots: Array<number> = []
  for (let slot = 0; slot < table.capacity; slot++) if (!isEmpty(table, slot)) slots.push(slot)
  return slots
}

const lastWordAt = (table: Table, slot: number) =>
  lastWord(at(table.words, slot), whatAt(table, slot)) >>> 0

/** Whether identifier `one` comes before `other` in a list: negative, zero or positive. */
export const compareSlots = (table: Table, one: number, other: number) => {
  const { words } = table
  for (let word = 0; word < 3; word++) {
    const order = at(words, restOf(table, one) + word) - at(words, restOf(table, other) + word)
    if (order !== 0) return order
  }
  return lastWordAt(table, one) - lastWordAt(table, other)
}

/** The slot's identifier as lower-case hex. */
export const idAt = (table: Table, slot: number) => {
  const { words } = table
  const rest = restOf(table, slot)
  const front = hexWord(at(words, rest)) + hexWord(at(words, rest + 1))
  // Only identifiers were taken apart into these words.
  return (front + hexWord(at(words, rest + 2)) + hexWord(lastWordAt(table, slot))) as BlobId
}

/** The slot's entry as an image holds it: seven little-endian words. */
export const writeEntry = (table: Table, slot: number, into: DataView, position: number) => {
  const { words } = table
  const rest = restOf(table, slot)
  for (let word = 0; word < rest_words; word++) {
    into.setUint32(position + 4 * word, at(words, rest + word), true)
  }
  into.setUint32(position + 4 * rest_words, at(words, slot), true)
}

/** Takes an entry of an image apart. */
export const readEntry = (from: DataView, position: number, key: Key): Packed => {
  const word = (number: number) => from.getUint32(position + 4 * number, true)
  key[0] = word(0)
  key[1] = word(1)
  key[2] = word(2)
  key[3] = lastWord(word(6), word(3))
  return [word(3) & ~last_bit, word(4), word(5)]
}

/**
 * Puts entries into another table, which has room for them and none of them: those whose first word
 * is from `lowest` up to below `end`.
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

/** The entries whose first word is from `lowest` up to below `end`. */
export const countRange = (table: Table, lowest: number, end: number) => {
  let count = 0
  for (let slot = 0; slot < table.capacity; slot++) {
    const first = firstWord(table, slot)
    if (first >= lowest && first < end && whatAt(table, slot) !== 0) count += 1
  }
  return count
}
