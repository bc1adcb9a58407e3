/**
 * Incremental base64, so that large bodies never block other requests.
 *
 * It uses Node's Buffer, which is vectorized: several gigabytes per second, compared with a few
 * hundred megabytes in plain JavaScript.
 */

/** Digits in one group, and the number of bytes that they encode. */
const group_digits = 4
const group_bytes = 3
const padding = 0x3d

/**
 * A valid last group of fewer than four digits: its last digit has no stray bits, and its padding
 * is complete or omitted.
 */
const last_group = /^[\w+/-](?:[AQgw](?:==)?|[\w+/-][AEIMQUYcgkosw048]=?)$/

/**
 * Decoded bytes are collected in pieces that double up to this size; larger ones are a quarter
 * slower.
 */
const piece_bytes_max = 256 * 1024

/** The size up to which Node allocates from its pool. */
const small_bytes_max = 4096

const bufferOf = ({ buffer, byteOffset, length }: Uint8Array) =>
  Buffer.from(buffer, byteOffset, length)

/** The index of a byte. Buffer's search is ten times as fast as a typed array's. */
export const placeOfByte = (bytes: Uint8Array, byte: number, from: number) =>
  (Buffer.isBuffer(bytes) ? bytes : bufferOf(bytes)).indexOf(byte, from)

/** Collects many small parts in a few pieces, which are filled one after the other. */
const pieceCollector = (sink?: (piece: Uint8Array) => void) => {
  const pieces: Array<Uint8Array> = []
  let piece = Buffer.alloc(0)
  let filled = 0
  const close = () => {
    if (filled > 0) pieces.push(piece.subarray(0, filled))
    filled = 0
  }
  /** Passes each full piece to the sink immediately. */
  const flush = () => {
    close()
    if (sink !== undefined) for (const full of pieces.splice(0)) sink(full)
  }
  /**
   * Makes room for the next `bytes` bytes, at least for one group of them; returns the free space.
   */
  const room = (bytes: number) => {
    if (piece.length - filled < group_bytes) {
      flush()
      const size = Math.min(piece_bytes_max, Math.max(bytes, 2 * piece.length))
      piece = size < small_bytes_max ? Buffer.allocUnsafe(size) : Buffer.allocUnsafeSlow(size)
    }
    return piece.length - filled
  }
  return {
    room,
    /** Decodes whole groups that fit into the piece; returns whether all characters were digits. */
    take: (digits: string) => {
      const written = piece.write(digits, filled, "base64")
      filled += written
      // Node skips characters that are not digits, so each of them shortens the result.
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
 * Decodes digits as they arrive. Accepts both alphabets of RFC 4648, padded or not, as proto3's
 * JSON does. Rejects white space, padding before the end and stray bits: `end` then returns
 * undefined. With a `sink`, decoded bytes go there in pieces of up to 256 KiB, and `end` returns
 * the rest.
 */
export const base64Decoder = (sink?: (piece: Uint8Array) => void) => {
  const collector = pieceCollector(sink)
  // Digits that are not decoded yet: an incomplete group, or the group with the padding.
  let rest = ""
  let is_sound = true

  const takeGroups = (digits: Buffer, start: number, end: number) => {
    for (let from = start; from < end && is_sound; ) {
      const room = collector.room(((end - from) / group_digits) * group_bytes)
      const to = Math.min(end, from + Math.floor(room / group_bytes) * group_digits)
      is_sound = collector.take(digits.toString("latin1", from, to))
      from = to
    }
  }
  /** Completes the incomplete group; returns where the next one begins. */
  const finishGroup = (digits: Buffer) => {
    const from = Math.min(digits.length, group_digits - rest.length)
    rest += digits.toString("latin1", 0, from)
    if (rest.length < group_digits || rest.endsWith("=")) {
      is_sound = from === digits.length
      return digits.length
    }
    collector.room(group_bytes)
    is_sound = collector.take(rest)
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
    // A group with padding must be the last one. It is held back: more digits would make it
    // invalid.
    const end = digits.length - (is_padded && tail === 0 ? group_digits : tail)
    takeGroups(digits, from, end)
    rest = digits.toString("latin1", end)
  }
  const end = (): ReadonlyArray<Uint8Array> | undefined => {
    if (is_sound && rest !== "") {
      is_sound = last_group.test(rest)
      if (is_sound) collector.add(Buffer.from(rest, "base64"))
    }
    return is_sound ? collector.pieces() : undefined
  }
  return { push, end }
}

/** Padded base64 of the standard alphabet. */
export const encodeBase64 = ({ buffer, byteOffset, length }: Uint8Array) =>
  Buffer.from(buffer, byteOffset, length).toString("base64")

/** Length of this many bytes in padded base64. */
export const base64Length = (bytes: number) => Math.ceil(bytes / group_bytes) * group_digits

/** Maximum number of bytes that this many digits encode. */
export const decodedLength = (digits: number) => Math.floor((digits / group_digits) * group_bytes)

/** Encodes consecutive pieces as one text: `push` returns whole groups only, `end` the rest. */
export const base64Encoder = () => {
  let rest = new Uint8Array(0)
  const push = (piece: Uint8Array) => {
    const joined = rest.length === 0 ? piece : Buffer.concat([rest, piece])
    const whole = joined.length - (joined.length % group_bytes)
    // A copy, because the caller may reuse the piece.
    rest = Uint8Array.from(joined.subarray(whole))
    return encodeBase64(joined.subarray(0, whole))
  }
  return { push, end: () => encodeBase64(rest) }
}
