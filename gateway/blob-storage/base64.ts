/**
 * Base64 in pieces, so that large bodies never hold up other requests.
 *
 * The only place of the gateway that uses Node's Buffer: its codec is vectorised, at several
 * gigabytes a second, where one in plain JavaScript has a few hundred megabytes.
 */

/** Digits in one group, and the bytes that they stand for. */
const group_digits = 4
const group_bytes = 3

/**
 * The end of a text that is no whole group of digits: its last digit carries no stray bits, and
 * padding is complete or left out.
 */
const last_group = /^[\w+/-](?:[AQgw](?:==)?|[\w+/-][AEIMQUYcgkosw048]=?)$/

const latin1 = ({ buffer, byteOffset, length }: Uint8Array) =>
  Buffer.from(buffer, byteOffset, length).toString("latin1")

/**
 * Decodes digits as they come. Either alphabet of RFC 4648, padded or not, as proto3's JSON takes
 * it; white space, padding inside and stray bits are refused: `end` then answers undefined.
 */
export const base64Decoder = () => {
  const pieces: Array<Uint8Array> = []
  let rest = ""
  let is_sound = true

  const take = (digits: string) => {
    const bytes = Buffer.from(digits, "base64")
    // Node skips what is no digit, so that every such character shortens the result.
    if (bytes.length * group_digits !== digits.length * group_bytes) is_sound = false
    else if (bytes.length > 0) pieces.push(bytes)
  }
  const push = (digits: Uint8Array) => {
    if (!is_sound) return
    const text = rest + latin1(digits)
    const padding = text.indexOf("=")
    const end = padding === -1 ? text.length : padding
    const whole = end - (end % group_digits)
    take(text.slice(0, whole))
    rest = text.slice(whole)
    if (rest.length > group_digits) is_sound = false
  }
  const end = (): ReadonlyArray<Uint8Array> | undefined => {
    if (is_sound && rest !== "") {
      is_sound = last_group.test(rest)
      if (is_sound) pieces.push(Buffer.from(rest, "base64"))
    }
    return is_sound ? pieces : undefined
  }
  return { push, end }
}

/** Padded base64 of the standard alphabet. */
export const encodeBase64 = ({ buffer, byteOffset, length }: Uint8Array) =>
  Buffer.from(buffer, byteOffset, length).toString("base64")

/** Characters of so many bytes in padded base64. */
export const base64Length = (bytes: number) => Math.ceil(bytes / group_bytes) * group_digits

/** Encodes pieces one after the other as one text: `push` answers whole groups only. */
export const base64Encoder = () => {
  let rest = new Uint8Array(0)
  const push = (piece: Uint8Array) => {
    const joined = rest.length === 0 ? piece : Buffer.concat([rest, piece])
    const whole = joined.length - (joined.length % group_bytes)
    rest = joined.slice(whole)
    return encodeBase64(joined.subarray(0, whole))
  }
  return { push, end: () => encodeBase64(rest) }
}
