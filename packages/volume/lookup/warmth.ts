/**
 * Which records the page cache most likely has: those that were read lately. They are read at once,
 * which takes a third of the time that a thread of the pool takes; all others never block.
 */

/** Slots of a generation: a record that falls on another's slot makes that forgotten. */
const slot_bits = 18
const slots = 1 << slot_bits
/** Bytes that are read until a generation is over: two of them are what is held to be warm. */
const generation_bytes = 256 * 1024 * 1024
/** Records above it are never read at once: 64 KiB are copied in some 10 us. */
export const warm_bytes_max = 68 * 1024

export interface Warmable {
  readonly file: number
  readonly position: number
  readonly bytes: number
}

/**
 * Where a record's mark is, and the mark: a mix of the 61 bits that say which record it is. Of the
 * product the first bits: they keep apart what lies one behind the other, where the last ones let
 * one in forty of a thousand records of 4 KiB fall on another.
 */
const slotOf = ({ file, position }: Warmable) => {
  const mixed = Math.imul(position >>> 3, 0x9e3779b1) ^ Math.imul(file, 0x85ebca6b)
  return mixed >>> (32 - slot_bits)
}
/** Never 0, which is an empty slot. */
const markOf = ({ file, position }: Warmable) =>
  (Math.imul(file, 0xc2b2ae35) ^ (position / 8)) >>> 0 || 1

/**
 * `isWarm` answers whether a record was read lately, and notes that it is read now; `wasWarm` only
 * answers, for whoever would read it now or not at all.
 */
export const makeWarmth = () => {
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
  const wasWarm = (record: Warmable): boolean => {
    if (record.bytes > warm_bytes_max) return false
    const slot = slotOf(record)
    const mark = markOf(record)
    return now[slot] === mark || before[slot] === mark
  }
  const isWarm = (record: Warmable): boolean => {
    if (record.bytes > warm_bytes_max) return false
    const slot = slotOf(record)
    const mark = markOf(record)
    if (now[slot] === mark) return true
    const was_warm = before[slot] === mark
    note(slot, mark, record.bytes)
    return was_warm
  }
  return { isWarm, wasWarm }
}
