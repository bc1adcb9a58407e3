/** Writes ZIP archives field by field, so that each field can lie. */
import { crc32, deflateRawSync } from "node:zlib"

export interface Part {
  readonly name: string
  readonly content: Buffer
  /** 0: stored, 8: deflated. */
  readonly method?: number
  readonly flags?: number
  readonly sum?: number
  /** Bytes that the directory declares. */
  readonly bytes?: number
  /** Place of an entry before it whose bytes it shares. */
  readonly over?: number
}

const record = (mark: number, fields: ReadonlyArray<readonly [2 | 4 | 8, number]>) => {
  const bytes = Buffer.alloc(4 + fields.reduce((sum, [width]) => sum + width, 0))
  bytes.writeUInt32LE(mark, 0)
  let place = 4
  for (const [width, value] of fields) {
    if (width === 8) bytes.writeBigUInt64LE(BigInt(value), place)
    else bytes.writeUIntLE(value, place, width)
    place += width
  }
  return bytes
}

const descriptor_flag = 8
const elsewhere = 0xffffffff

interface Entry {
  readonly name: Buffer
  readonly method: number
  readonly flags: number
  readonly sum: number
  readonly packed: number
  readonly bytes: number
  readonly place: number
}

const centralOf = ({ name, ...entry }: Entry, is_long: boolean) => {
  const numbers = [entry.bytes, entry.packed, entry.place]
  const extra = is_long
    ? Buffer.concat([
        // An extra field of another kind comes first.
        Buffer.from([0x55, 0x54, 1, 0, 0, 1, 0, 24, 0]),
        record(0, [...numbers.map((value) => [8, value] as const)]).subarray(4),
      ])
    : Buffer.alloc(0)
  const [bytes = 0, packed = 0, place = 0] = is_long ? numbers.map(() => elsewhere) : numbers
  const head = record(0x02014b50, [
    [4, 0],
    [2, entry.flags],
    [2, entry.method],
    [4, 0],
    [4, entry.sum],
    [4, packed],
    [4, bytes],
    [2, name.length],
    [2, extra.length],
    [8, 0],
    [2, 0],
    [4, place],
  ])
  return Buffer.concat([head, name, extra])
}

const endOf = (entries: number, place: number, directory: Buffer, is_long: boolean) => {
  const end = record(0x06054b50, [
    [4, 0],
    [2, entries],
    [2, entries],
    [4, is_long ? elsewhere : directory.length],
    [4, is_long ? elsewhere : place],
    [2, 0],
  ])
  if (!is_long) return end
  const end64 = record(0x06064b50, [
    [8, 44],
    [4, 0],
    [8, 0],
    [8, entries],
    [8, entries],
    [8, directory.length],
    [8, place],
  ])
  const locator = record(0x07064b50, [
    [4, 0],
    [8, place + directory.length],
    [4, 1],
  ])
  return Buffer.concat([end64, locator, end])
}

/** `is_long`: sizes and places are in 64 bits, as in an archive of more than 4 GB. */
export const archiveOf = (parts: ReadonlyArray<Part>, is_long = false): Buffer => {
  const locals: Array<Buffer> = []
  const entries: Array<Entry> = []
  let place = 0
  for (const { name, content, method = 8, flags = 0, over, ...part } of parts) {
    const packed = method === 8 ? deflateRawSync(content) : content
    const sum = part.sum ?? crc32(content)
    const named = Buffer.from(name)
    const shared = over === undefined ? undefined : entries[over]
    const bytes = part.bytes ?? content.length
    const entry = { name: named, method, flags, sum, packed: packed.length, bytes, place }
    entries.push({ ...entry, place: shared?.place ?? place })
    if (shared !== undefined) continue
    const later = (flags & descriptor_flag) !== 0
    const local = record(0x04034b50, [
      [2, 20],
      [2, flags],
      [2, method],
      [4, 0],
      [4, later ? 0 : sum],
      [4, later ? 0 : packed.length],
      [4, later || bytes > elsewhere ? 0 : bytes],
      [2, named.length],
      [2, 0],
    ])
    const fields = [sum, packed.length, bytes].map((value) => [4, value] as const)
    const sizes = later ? [record(0x08074b50, fields)] : []
    const whole = Buffer.concat([local, named, packed, ...sizes])
    locals.push(whole)
    place += whole.length
  }
  const directory = Buffer.concat(entries.map((entry) => centralOf(entry, is_long)))
  return Buffer.concat([...locals, directory, endOf(entries.length, place, directory, is_long)])
}
