/**
 * The owners of the spans of one extent file: a sorted table on one typed array, 24 bytes per span.
 * Pure; positions in bytes, multiples of a page.
 */
import type { BlobId } from "#schemas/blob-storage/blob.ts"
import { page_bytes, type Span } from "./free-map.ts"

/** First page, number of pages, and the id as four big-endian words. */
const entry_words = 6
const entries_first = 16
/** Size of a span in an image. */
export const owner_bytes = entry_words * Uint32Array.BYTES_PER_ELEMENT

export interface OwnedSpan extends Span {
  readonly id: BlobId
}

const isSame = (one: Span, other: Span) => one.start === other.start && one.end === other.end

const wordOf = (id: BlobId, word: number) => Number.parseInt(id.slice(8 * word, 8 * word + 8), 16)
const hexOf = (word: number) => word.toString(16).padStart(8, "0")

/** Sorted entries, empty or from an image, which is not changed. */
const makeEntries = (image: Uint32Array | undefined) => {
  let words = new Uint32Array(Math.max(image?.length ?? 0, entries_first * entry_words))
  words.set(image ?? [])
  let count = (image?.length ?? 0) / entry_words

  const startAt = (entry: number) => (words[entry * entry_words] ?? 0) * page_bytes
  const endAt = (entry: number) =>
    startAt(entry) + (words[entry * entry_words + 1] ?? 0) * page_bytes
  const idAt = (entry: number) => {
    const at = entry * entry_words + 2
    // Four words in hex are the id that they were made from.
    return Array.from(words.subarray(at, at + 4), hexOf).join("") as BlobId
  }
  const entryAt = (entry: number): OwnedSpan => ({
    start: startAt(entry),
    end: endAt(entry),
    id: idAt(entry),
  })
  /** The first entry that ends after the position. */
  const indexOf = (position: number) => {
    let low = 0
    let high = count
    while (low < high) {
      const middle = (low + high) >>> 1
      if (endAt(middle) <= position) low = middle + 1
      else high = middle
    }
    return low
  }
  const removeAt = (entry: number) => {
    words.copyWithin(entry * entry_words, (entry + 1) * entry_words, count * entry_words)
    count -= 1
  }
  const insertAt = (entry: number, { start, end }: Span, id: BlobId) => {
    if ((count + 1) * entry_words > words.length) {
      const larger = new Uint32Array(2 * words.length)
      larger.set(words)
      words = larger
    }
    words.copyWithin((entry + 1) * entry_words, entry * entry_words, count * entry_words)
    count += 1
    const at = entry * entry_words
    words[at] = start / page_bytes
    words[at + 1] = (end - start) / page_bytes
    for (let word = 0; word < 4; word++) words[at + 2 + word] = wordOf(id, word)
  }
  return {
    indexOf,
    insertAt,
    removeAt,
    at: entryAt,
    count: () => count,
    image: () => words.slice(0, count * entry_words),
  }
}

/** An owner table, empty or from an image, which is not changed. */
export const makeOwnerTable = (image?: Uint32Array) => {
  const { at, indexOf, insertAt, removeAt, count, image: entriesImage } = makeEntries(image)

  const isAt = (entry: number, span: Span, id: BlobId) =>
    entry < count() && isSame(at(entry), span) && at(entry).id === id

  /** Whether the id owns exactly this span. */
  const has = (span: Span, id: BlobId) => isAt(indexOf(span.start), span, id)
  /** Assigns a span to an id. Returns the overlapping spans, which lose their owners. */
  const keep = (span: Span, id: BlobId): ReadonlyArray<OwnedSpan> => {
    const entry = indexOf(span.start)
    if (isAt(entry, span, id)) return []
    const evicted: Array<OwnedSpan> = []
    while (entry < count() && at(entry).start < span.end) {
      evicted.push(at(entry))
      removeAt(entry)
    }
    insertAt(entry, span, id)
    return evicted
  }
  /** Frees a span. False if the id does not own it. */
  const free = (span: Span, id: BlobId): boolean => {
    const entry = indexOf(span.start)
    if (!isAt(entry, span, id)) return false
    removeAt(entry)
    return true
  }
  return {
    has,
    keep,
    free,
    count,
    entries: (): ReadonlyArray<OwnedSpan> =>
      Array.from({ length: count() }, (_, entry) => at(entry)),
    image: entriesImage,
  }
}
export type OwnerTable = ReturnType<typeof makeOwnerTable>
