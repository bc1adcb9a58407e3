/** Reads all bytes into memory; beyond `bytes_max` it stops and throws the error of `tooLong`. */
export const readAll = async (
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
