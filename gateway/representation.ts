/**
 * Bytes that are kept as they go over the wire, and the form of them that a request gets.
 *
 * Source: RFC 9110 §8.8 and §13; market facts, A2.8.
 */
import { type HttpServerRequest, HttpServerResponse } from "effect/http"

export interface Representation {
  readonly bytes: Uint8Array
  /** The same by gzip; null where that is not worth it. */
  readonly gzip: Uint8Array | null
  /** The same for the same bytes, and for no others; without quotes. */
  readonly tag: string
}

/** Whether one of the header's tags is this one; a weak tag stands for the same bytes here. */
export const matchesTag = (header: string | undefined, tag: string) =>
  header !== undefined &&
  (header.trim() === "*" ||
    header.split(",").some((other) => other.trim().replace(/^W\//, "") === tag))

const codingOf = (text: string) => {
  const [name = "", ...parameters] = text.split(";").map((part) => part.trim().toLowerCase())
  const quality = parameters.find((parameter) => parameter.startsWith("q="))
  return { name, is_taken: quality === undefined || Number(quality.slice(2)) > 0 }
}

/** Whether an Accept-Encoding header takes gzip: by its name, or else by a star. */
const acceptsGzip = (header: string | undefined) => {
  if (header === undefined) return false
  const codings = header.split(",").map(codingOf)
  const named = codings.find(({ name }) => name === "gzip" || name === "x-gzip")
  return (named ?? codings.find(({ name }) => name === "*"))?.is_taken === true
}

/**
 * 200 with the bytes, gzipped for who takes that, or 304 for who has them. Each form has a strong
 * tag of its own; `headers` are answered with either status.
 */
export const represented = (
  { headers: asked }: HttpServerRequest.HttpServerRequest,
  { bytes, gzip, tag }: Representation,
  contentType: string,
  headers: Readonly<Record<string, string>>,
): HttpServerResponse.HttpServerResponse => {
  const zipped = gzip !== null && acceptsGzip(asked["accept-encoding"]) ? gzip : undefined
  const etag = zipped === undefined ? `"${tag}"` : `"${tag}-gzip"`
  const all = { vary: "accept-encoding", ...headers, etag }
  if (matchesTag(asked["if-none-match"], etag)) {
    return HttpServerResponse.empty({ status: 304, headers: all })
  }
  return HttpServerResponse.uint8Array(zipped ?? bytes, {
    contentType,
    headers: zipped === undefined ? all : { ...all, "content-encoding": "gzip" },
  })
}
