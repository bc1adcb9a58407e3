/**
 * Base64 in pieces, so that large bodies never hold up other requests.
 *
 * By Node's Buffer, which is vectorized: several gigabytes a second, where plain JavaScript reaches
 * a few hundred megabytes.
 */

/** Digits in one group, and the bytes that they stand for. */
const group_digits = 4
const group_bytes = 3
const padding = 0x3d

/**
 * The end of a text that is no whole group of digits: its last digit carries no stray bits, and
 * padding is complete or left out.
 */
const last_group = /^[\w+/-](?:[AQgw](?:==)?|[\w+/-][AEIMQUYcgkosw048]=?)$/

/** Decoded bytes are gathered in pieces that double up to this; larger ones cost a fourth more. */
const piece_bytes_max = 256 * 1024

/** The size up to which Node allocates from its pool. */
const small_bytes_max = 4096

const bufferOf = ({ buffer, byteOffset, length }: Uint8Array) =>
  Buffer.from(buffer, byteOffset, length)

/** The index of a byte, by Buffer's search: a typed array's takes ten times as long. */
export const placeOfByte = (bytes: Uint8Array, byte: number, from: number) =>
  (Buffer.isBuffer(bytes) ? bytes : bufferOf(bytes)).indexOf(byte, from)

/** Pieces that are filled one behind the other, so that many small parts become few. */
const gatherer = (sink?: (piece: Uint8Array) => void) => {
  const pieces: Array<Uint8Array> = []
  let piece = Buffer.alloc(0)
  let filled = 0
  const close = () => {
    if (filled > 0) pieces.push(piece.subarray(0, filled))
    filled = 0
  }
  /** Passes each full piece to the sink at once. */
  const pass = () => {
    close()
    if (sink !== undefined) for (const full of pieces.splice(0)) sink(full)
  }
  /** Room for the next of so many bytes that are to come, three bytes of it at least. */
  const room = (bytes: number) => {
    if (piece.length - filled < group_bytes) {
      pass()
      const size = Math.min(piece_bytes_max, Math.max(bytes, 2 * piece.length))
      piece = size < small_bytes_max ? Buffer.allocUnsafe(size) : Buffer.allocUnsafeSlow(size)
    }
    return piece.length - filled
  }
  return {
    room,
    /** Decodes whole groups for which there is room; answers whether all of them were digits. */
    take: (digits: string) => {
      const written = piece.write(digits, filled, "base64")
      filled += written
      // Node skips what is no digit, so that every such character shortens the result.
      return written * group_digits === digits.length * group_bytes
    },
    add: (bytes: Uint8Array) => {
      close()
      piece = Buffer.alloc(0)
      pieces.push(bytes)
    },
    pieces: () => {
      close()
      return pieces
    },
  }
}

/**
 * Decodes digits as they come. Either alphabet of RFC 4648, padded or not, as proto3's JSON takes
 * it; white space, padding inside and stray bits are refused: `end` then answers undefined. A
 * `sink` takes what is decoded so far, in pieces of up to 256 KiB, and `end` answers the rest.
 */
export const base64Decoder = (sink?: (piece: Uint8Array) => void) => {
  const gathered = gatherer(sink)
  // The end of what came: less than a group, or the one with the padding.
  let rest = ""
  let is_sound = true

  const takeGroups = (digits: Buffer, start: number, end: number) => {
    for (let from = start; from < end && is_sound; ) {
      const room = gathered.room(((end - from) / group_digits) * group_bytes)
      const to = Math.min(end, from + Math.floor(room / group_bytes) * group_digits)
      is_sound = gathered.take(digits.toString("latin1", from, to))
      from = to
    }
  }
  /** Fills up the group that was begun; answers where the next one begins. */
  const finishGroup = (digits: Buffer) => {
    const from = Math.min(digits.length, group_digits - rest.length)
    rest += digits.toString("latin1", 0, from)
    if (rest.length < group_digits || rest.endsWith("=")) {
      is_sound = from === digits.length
      return digits.length
    }
    gathered.room(group_bytes)
    is_sound = gathered.take(rest)
    rest = ""
    return from
  }
  const push = (bytes: Uint8Array) => {
    if (!is_sound || bytes.length === 0) return
    const digits = Buffer.isBuffer(bytes) ? bytes : bufferOf(bytes)
    const from = rest === "" ? 0 : finishGroup(digits)
    if (from === digits.length) return
    const tail = (digits.length - from) % group_digits
    const is_padded = digits[digits.length - 1] === padding
    // What ends in padding is the last group: nothing may follow it, which its end will show.
    const end = digits.length - (is_padded && tail === 0 ? group_digits : tail)
    takeGroups(digits, from, end)
    rest = digits.toString("latin1", end)
  }
  const end = (): ReadonlyArray<Uint8Array> | undefined => {
    if (is_sound && rest !== "") {
      is_sound = last_group.test(rest)
      if (is_sound) gathered.add(Buffer.from(rest, "base64"))
    }
    return is_sound ? gathered.pieces() : undefined
  }
  return { push, end }
}

/** Padded base64 of the standard alphabet. */
export const encodeBase64 = ({ buffer, byteOffset, length }: Uint8Array) =>
  Buffer.from(buffer, byteOffset, length).toString("base64")

/** Characters of so many bytes in padded base64. */
export const base64Length = (bytes: number) => Math.ceil(bytes / group_bytes) * group_digits

/** The most bytes that so many digits stand for. */
export const decodedLength = (digits: number) => Math.floor((digits / group_digits) * group_bytes)

/** Encodes pieces one after the other as one text: `push` answers whole groups only. */
export const base64Encoder = () => {
  let rest = new Uint8Array(0)
  const push = (piece: Uint8Array) => {
    const joined = rest.length === 0 ? piece : Buffer.concat([rest, piece])
    const whole = joined.length - (joined.length % group_bytes)
    // A copy: the caller may use the piece again.
    rest = Uint8Array.from(joined.subarray(whole))
    return encodeBase64(joined.subarray(0, whole))
  }
  return { push, end: () => encodeBase64(rest) }
}
