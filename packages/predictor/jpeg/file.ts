/**
 * An ordinary JPEG's tables and bits, as far as it is one: a single scan of Huffman codes without
 * restarts, to its end. Of everything else nothing is said. Source: ITU T.81, B.2.
 */
import { type Codes, codesOf } from "./codes.ts"

export interface Component {
  /** Blocks of one unit of the scan. */
  readonly across: number
  readonly down: number
  /** 64 of them, in the order of the codes. */
  readonly factors: Uint8Array
  readonly first: Codes
  readonly others: Codes
}

export interface JpegFile {
  readonly width: number
  readonly height: number
  readonly components: ReadonlyArray<Component>
  /** Where the bits begin. */
  readonly scan_at: number
}

const marker_start = 0xff
const frame_baseline = 0xc0
const frame_extended = 0xc1
const huffman_tables = 0xc4
const scan = 0xda
const factor_tables = 0xdb
const jfif = 0xe0
/** The name, and the version that there is. */
const jfif_begin = Buffer.from("JFIF\0\u0001", "latin1")
/** Adobe's, which may say that colours are no YCbCr. */
const adobe = 0xee
const application_last = 0xef
const comment = 0xfe
const end = 0xd9

const factor_count = 64
const code_lengths = 16
const codes_max = 256
/** Of tables of one kind; codes of a block's other numbers have a bit more. */
const number_max = 3
const is_other = 0x10
/** Of a block's first number: its bits. */
const first_symbol_max = 15
/** 0, all of 64 numbers, at once: what a scan says that is not progressive. */
const whole_scan = "0 63 0"
/** What JFIF calls its components: other names may be other colours. */
const names = "1 2 3"

interface Tables {
  readonly factors: Map<number, Uint8Array>
  readonly codes: Map<number, Codes>
}

/** Makes them once for files of one sender, which mostly have the same. */
export type CodesFor = (counts: Uint8Array, symbols: Uint8Array) => Codes | undefined

/** Codes by their own bytes: most files have the four of T.81, K.3. */
export const keptCodes = (kept_max: number): CodesFor => {
  const kept = new Map<string, Codes>()
  return (counts, symbols) => {
    const name = Buffer.concat([counts, symbols]).toString("latin1")
    const known = kept.get(name)
    if (known !== undefined) return known
    const made = codesOf(counts, symbols.slice())
    if (kept.size >= kept_max) kept.clear()
    if (made !== undefined) kept.set(name, made)
    return made
  }
}

const word = (bytes: Uint8Array, at: number) => ((bytes[at] ?? 0) << 8) | (bytes[at + 1] ?? 0)

/** Undefined of whatever is not plain. */
export const jpegFile = (bytes: Uint8Array, codesFor: CodesFor): JpegFile | undefined => {
  const tables: Tables = { factors: new Map(), codes: new Map() }
  let frame: Uint8Array | undefined
  for (let at = 2; at + 4 < bytes.length; ) {
    const marker = bytes[at + 1] ?? 0
    const to = at + 2 + word(bytes, at + 2)
    const segment = bytes.subarray(at + 4, to)
    if (bytes[at] !== marker_start || to < at + 4 || to > bytes.length) return undefined
    if (marker === scan) return frame && scanned(frame, segment, tables, to)
    if (marker === huffman_tables && !putCodes(segment, tables, codesFor)) return undefined
    if (marker === factor_tables && !putFactors(segment, tables)) return undefined
    if (marker === frame_baseline || marker === frame_extended) {
      if (frame !== undefined) return undefined
      frame = segment
    } else if (!isPassed(marker, segment)) {
      return undefined
    }
    at = to
  }
  return undefined
}

/** Says nothing about pixels, or what it says was read. */
const isPassed = (marker: number, segment: Uint8Array) => {
  if (marker === jfif) return Buffer.from(segment.subarray(0, 6)).equals(jfif_begin)
  const is_application = marker > jfif && marker <= application_last && marker !== adobe
  const is_table = marker === huffman_tables || marker === factor_tables
  return is_application || is_table || marker === comment
}

const putFactors = (segment: Uint8Array, { factors }: Tables) => {
  for (let at = 0; at < segment.length; at += 1 + factor_count) {
    // The upper half says that they have 16 bits.
    const number = segment[at] ?? 0
    const table = segment.subarray(at + 1, at + 1 + factor_count)
    if (number > number_max || table.length < factor_count) return false
    factors.set(number, table)
  }
  return true
}

const putCodes = (segment: Uint8Array, { codes }: Tables, codesFor: CodesFor) => {
  for (let at = 0; at < segment.length; ) {
    const counts = segment.subarray(at + 1, at + 1 + code_lengths)
    const count = counts.reduce((sum, one) => sum + one, 0)
    const to = at + 1 + code_lengths + count
    const number = segment[at] ?? 0
    if (to > segment.length || count > codes_max || (number & ~is_other) > number_max) return false
    // A file of nothing but tables would keep the thread: each takes longer to make than to send.
    if (codes.has(number)) return false
    const made = codesFor(counts, segment.subarray(at + 1 + code_lengths, to))
    if (made === undefined) return false
    codes.set(number, made)
    at = to
  }
  return true
}

/** The frame and the scan name the same components, in the same order. */
const scanned = (
  frame: Uint8Array,
  segment: Uint8Array,
  { factors, codes }: Tables,
  scan_at: number,
): JpegFile | undefined => {
  const count = segment[0] ?? 0
  const is_whole = segment.length === 4 + 2 * count && frame.length === 6 + 3 * count
  if (!is_whole || frame[5] !== count) return undefined
  if (segment.subarray(1 + 2 * count).join(" ") !== whole_scan) return undefined
  const components: Array<Component> = []
  const named: Array<number | undefined> = []
  for (let n = 0; n < count; n++) {
    const [name, sampling = 0, factor = 0] = frame.subarray(6 + n * 3)
    const [scanned_name, coded = 0] = segment.subarray(1 + n * 2)
    const table = factors.get(factor)
    const [first, others] = [codes.get(coded >> 4), codes.get(is_other | (coded & 0xf))]
    if (name !== scanned_name || !table || !first || !others) return undefined
    if (first.symbols.some((symbol) => symbol > first_symbol_max)) return undefined
    named.push(name)
    const [across, down] = [sampling >> 4, sampling & 0xf]
    components.push({ across, down, factors: table, first, others })
  }
  if (count !== 1 && named.join(" ") !== names) return undefined
  return { height: word(frame, 1), width: word(frame, 3), components, scan_at }
}

/**
 * The scan's bytes, as they were before what looks like a marker was marked, go to `target`;
 * answers how many, or undefined where they do not end with the image.
 */
export const unmarked = (
  bytes: Uint8Array,
  from: number,
  target: Uint8Array,
): number | undefined => {
  let [at, length] = [from, 0]
  while (true) {
    const marked = bytes.indexOf(marker_start, at)
    if (marked < 0) return undefined
    target.set(bytes.subarray(at, marked + 1), length)
    length += marked + 1 - at
    if (bytes[marked + 1] !== 0) return bytes[marked + 1] === end ? length - 1 : undefined
    at = marked + 2
  }
}
