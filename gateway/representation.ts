/**
 * Responds with cached bytes, plain or gzipped.
 *
 * Source: RFC 9110 §8.8 and §13; market facts, A2.8.
 */
import { type HttpServerRequest, HttpServerResponse } from "effect/http"

export interface Representation {
  readonly bytes: Uint8Array
  /** The gzipped bytes; null if compression saves too little. */
  readonly gzip: Uint8Array | null
  /** Identifies the bytes; without quotes. */
  readonly tag: string
}

/** Whether the header contains this tag, strong or weak. */
export const matchesTag = (header: string | undefined, tag: string) =>
  header !== undefined &&
  (header.trim() === "*" ||
    header.split(",").some((other) => other.trim().replace(/^W\//, "") === tag))

const codingOf = (text: string) => {
  const [name = "", ...parameters] = text.split(";").map((part) => part.trim().toLowerCase())
  const quality = parameters.find((parameter) => parameter.startsWith("q="))
  return { name, is_accepted: quality === undefined || Number(quality.slice(2)) > 0 }
}

/** Whether an Accept-Encoding header accepts gzip, by name or by a star. */
const acceptsGzip = (header: string | undefined) => {
  if (header === undefined) return false
  const codings = header.split(",").map(codingOf)
  const named = codings.find(({ name }) => name === "gzip" || name === "x-gzip")
  return (named ?? codings.find(({ name }) => name === "*"))?.is_accepted === true
}

/**
 * Responds with 200 and the bytes, gzipped if the client accepts that, or with 304. Each encoding
 * has its own strong tag; both responses have `headers`.
 */
export const represented = (
  { headers: request_headers }: HttpServerRequest.HttpServerRequest,
  { bytes, gzip, tag }: Representation,
  contentType: string,
  headers: Readonly<Record<string, string>>,
): HttpServerResponse.HttpServerResponse => {
  const zipped = gzip !== null && acceptsGzip(request_headers["accept-encoding"]) ? gzip : undefined
  const etag = zipped === undefined ? `"${tag}"` : `"${tag}-gzip"`
  const all = { vary: "accept-encoding", ...headers, etag }
  if (matchesTag(request_headers["if-none-match"], etag)) {
    return HttpServerResponse.empty({ status: 304, headers: all })
  }
  return HttpServerResponse.uint8Array(zipped ?? bytes, {
    contentType,
    headers: zipped === undefined ? all : { ...all, "content-encoding": "gzip" },
  })
}
