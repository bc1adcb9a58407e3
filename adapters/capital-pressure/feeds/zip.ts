/**
 * A workbook's archive, unpacked under a bound and packed again without compression: whoever reads
 * it afterwards finds what it says it holds, and no more than that.
 *
 * A library unpacks whatever it is told, and a few kilobytes can become gigabytes.
 */
import { crc32, inflateRawSync } from "node:zlib"
import { Result } from "effect"

/** Parts of a workbook; one with a sheet for each state of the union has some hundred. */
const entries_max = 1000
const comment_bytes_max = 65_535

const end_bytes = 22
const central_bytes = 46
const local_bytes = 30
const end_mark = 0x06054b50
const central_mark = 0x02014b50
const local_mark = 0x04034b50
const method_stored = 0
const method_deflated = 8
const version = 20

interface Entry {
  readonly name: Buffer
  readonly data: Buffer
}

/** The archive's XML parts, uncompressed; why not, where it is none or unpacks to more bytes. */
export const boundedZip = (
  bytes: Uint8Array,
  bytes_max: number,
): Result.Result<ArrayBuffer, string> => {
  const zip = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  return Result.try({
    try: () => packed(entriesOf(zip, bytes_max)),
    catch: (cause) =>
      isTooLarge(cause)
        ? `unpacks to more than ${bytes_max / 1024 / 1024} MB`
        : "answered what is no workbook",
  })
}

const isTooLarge = (cause: unknown) =>
  cause instanceof Error && "code" in cause && cause.code === "ERR_BUFFER_TOO_LARGE"

/** Throws where the archive does not hold together; reads beyond the end throw by themselves. */
const entriesOf = (zip: Buffer, bytes_max: number): ReadonlyArray<Entry> => {
  const end = endOf(zip)
  const count = zip.readUInt16LE(end + 10)
  if (count > entries_max) throw new RangeError("too many entries")
  const entries: Array<Entry> = []
  let left = bytes_max
  let place = zip.readUInt32LE(end + 16)
  for (let n = 0; n < count; n += 1) {
    if (zip.readUInt32LE(place) !== central_mark) throw new RangeError("no entry")
    const [name_bytes, extra_bytes, comment_bytes] = [28, 30, 32].map((at) =>
      zip.readUInt16LE(place + at),
    ) as [number, number, number] // Three places give three numbers.
    const name = zip.subarray(place + central_bytes, place + central_bytes + name_bytes)
    if (/\.(xml|rels)$/i.test(name.toString("utf8"))) {
      const data = dataOf(zip, place, left)
      if (crc32(data) !== zip.readUInt32LE(place + 16)) throw new RangeError("damaged")
      left -= data.length
      entries.push({ name, data })
    }
    place += central_bytes + name_bytes + extra_bytes + comment_bytes
  }
  return entries
}

const endOf = (zip: Buffer) => {
  const first = Math.max(0, zip.length - end_bytes - comment_bytes_max)
  for (let place = zip.length - end_bytes; place >= first; place -= 1) {
    if (zip.readUInt32LE(place) === end_mark) return place
  }
  throw new RangeError("no end of a directory")
}

const dataOf = (zip: Buffer, central: number, bytes_max: number) => {
  const method = zip.readUInt16LE(central + 10)
  const length = zip.readUInt32LE(central + 20)
  const local = zip.readUInt32LE(central + 42)
  if (zip.readUInt32LE(local) !== local_mark) throw new RangeError("no data")
  const start = local + local_bytes + zip.readUInt16LE(local + 26) + zip.readUInt16LE(local + 28)
  if (start + length > zip.length) throw new RangeError("cut off")
  const data = zip.subarray(start, start + length)
  if (method === method_deflated) return inflateRawSync(data, { maxOutputLength: bytes_max || 1 })
  if (method !== method_stored) throw new RangeError("an unknown compression")
  if (length > bytes_max) throw tooLarge()
  return data
}

const tooLarge = () => Object.assign(new RangeError("too large"), { code: "ERR_BUFFER_TOO_LARGE" })

const packed = (entries: ReadonlyArray<Entry>): ArrayBuffer => {
  const locals: Array<Buffer> = []
  const centrals: Array<Buffer> = []
  let offset = 0
  for (const { name, data } of entries) {
    const about = Buffer.alloc(26)
    about.writeUInt16LE(version, 0)
    about.writeUInt32LE(crc32(data), 10)
    about.writeUInt32LE(data.length, 14)
    about.writeUInt32LE(data.length, 18)
    about.writeUInt16LE(name.length, 22)
    locals.push(mark(local_mark), about, name, data)
    const central = Buffer.alloc(central_bytes - 32)
    central.writeUInt32LE(offset, 10)
    const made_by = Buffer.alloc(2)
    made_by.writeUInt16LE(version, 0)
    centrals.push(mark(central_mark), made_by, about, central, name)
    offset += local_bytes + name.length + data.length
  }
  const directory = Buffer.concat(centrals)
  const end = Buffer.alloc(end_bytes - 4)
  end.writeUInt16LE(entries.length, 4)
  end.writeUInt16LE(entries.length, 6)
  end.writeUInt32LE(directory.length, 8)
  end.writeUInt32LE(offset, 12)
  return Uint8Array.from(Buffer.concat([...locals, directory, mark(end_mark), end])).buffer
}

const mark = (value: number) => {
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32LE(value)
  return bytes
}
