/**
 * Estimates which records are in the page cache: those read recently. They are read synchronously,
 * which takes a third of the time of a read in the thread pool. All other reads never block.
 */

/** Slots of a generation. A record that falls on another's slot replaces it. */
const slot_bits = 18
const slots = 1 << slot_bits
/** Bytes read per generation. The records of two generations count as cached. */
const generation_bytes = 256 * 1024 * 1024
/** Larger records are never read synchronously: copying 64 KiB takes about 10 us. */
export const cached_bytes_max = 68 * 1024

export interface CachedRecord {
  readonly file: number
  readonly position: number
  readonly bytes: number
}

/**
 * A record's slot: a hash of the 61 bits that identify the record. Uses the high bits of the
 * product, which spread neighbouring records; in the low bits, one in forty of a thousand records
 * of 4 KiB collides.
 */
const slotOf = ({ file, position }: CachedRecord) => {
  const mixed = Math.imul(position >>> 3, 0x9e3779b1) ^ Math.imul(file, 0x85ebca6b)
  return mixed >>> (32 - slot_bits)
}
/** A record's mark in its slot. Never 0, which is an empty slot. */
const markOf = ({ file, position }: CachedRecord) =>
  (Math.imul(file, 0xc2b2ae35) ^ (position / 8)) >>> 0 || 1

/**
 * `noteRead` returns whether a record was read recently, and notes that it is read now. `isCached`
 * only returns it.
 */
export const makePageCacheEstimate = () => {
  let now = new Uint32Array(slots)
  let before = new Uint32Array(slots)
  let bytes = 0

  const note = (slot: number, mark: number, record_bytes: number) => {
    now[slot] = mark
    bytes += record_bytes
    if (bytes < generation_bytes) return
    const oldest = before
    before = now
    now = oldest.fill(0)
    bytes = 0
  }
  const isCached = (record: CachedRecord): boolean => {
    if (record.bytes > cached_bytes_max) return false
    const slot = slotOf(record)
    const mark = markOf(record)
    return now[slot] === mark || before[slot] === mark
  }
  const noteRead = (record: CachedRecord): boolean => {
    if (record.bytes > cached_bytes_max) return false
    const slot = slotOf(record)
    const mark = markOf(record)
    if (now[slot] === mark) return true
    const was_cached = before[slot] === mark
    note(slot, mark, record.bytes)
    return was_cached
  }
  return { noteRead, isCached }
}
