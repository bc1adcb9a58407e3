/** Reads a response body, decompressing and counting its bytes. */
import type { Readable } from "node:stream"
import { createGunzip } from "node:zlib"

/**
 * Reads a body of limited size. Throws an error with the code TOO_LARGE, BAD_ENCODING, one of
 * zlib's (Z_...) or one of the connection.
 */
export const readBody = async (
  body: Readable,
  encoding: string,
  bytes_max: number,
): Promise<Uint8Array> => {
  // An aborted body emits another error when there is no listener left.
  body.on("error", () => undefined)
  if (!["", "identity", "gzip", "x-gzip"].includes(encoding)) {
    body.destroy()
    throw Object.assign(new Error("encoding"), { code: "BAD_ENCODING" })
  }
  const source = encoding.endsWith("gzip") ? gunzipped(body) : body
  const parts: Array<Buffer> = []
  let length = 0
  try {
    for await (const part of source) {
      const bytes = Buffer.from(part)
      length += bytes.length
      if (length > bytes_max) throw Object.assign(new Error("length"), { code: "TOO_LARGE" })
      parts.push(bytes)
    }
  } finally {
    body.destroy()
  }
  return Buffer.concat(parts)
}

/** Links the connection and the decompression: an error of one ends the other. */
const gunzipped = (body: Readable) => {
  const gunzip = createGunzip()
  body.once("error", (error) => gunzip.destroy(error))
  gunzip.once("error", () => body.destroy())
  return body.pipe(gunzip)
}
