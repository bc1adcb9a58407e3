/** What is read whole into memory, up to a bound. */

/** All of the bytes; throws what `tooLong` makes, and reads no further, where there are more. */
export const whole = async (
  source: AsyncIterable<Uint8Array>,
  bytes_max: number,
  tooLong: (message: string) => Error,
) => {
  const parts: Array<Uint8Array> = []
  let bytes = 0
  for await (const part of source) {
    bytes += part.length
    if (bytes > bytes_max) throw tooLong(`longer than ${bytes_max} bytes`)
    parts.push(part)
  }
  return Buffer.concat(parts)
}
