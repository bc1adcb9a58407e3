/**
 * Reads a request for a blob: its parameters, query, headers and body.
 *
 * Source: document 1 §4 BlobService; DECISIONS, document 1, framing.
 */
import { Result, Schema } from "effect"
import { blob_id, put_stream_query, scope_query } from "#gateway/blob-storage/apis/blobs.ts"
import { refusedFields } from "#gateway/blob-storage/body/message-fields.ts"
import type { DirectHeaders, Exchange } from "#gateway/direct.ts"
import { BlobId, BlobLabels } from "#schemas/blob-storage/blob.ts"
import { InvalidArgument } from "#schemas/blob-storage/rejection.ts"

const decoder = <S extends Schema.ConstraintDecoder<unknown>>(kind: string, schema: S) => {
  const decode = Schema.decodeUnknownResult(schema)
  return (input: unknown): S["Type"] => {
    const decoded = decode(input)
    if (Result.isFailure(decoded)) throw refusedFields(kind, decoded.failure)
    return decoded.success
  }
}

const decodeParams = decoder("Params", Schema.Struct(blob_id))
const decodeLabels = decoder("X-Label", BlobLabels)
const decodePutStream = decoder("Query", Schema.Struct(put_stream_query))
const decodeScope = decoder("Query", Schema.Struct(scope_query))

const isBlobId = Schema.is(BlobId)

/** The blob in the path. Throws InvalidArgument, like the functions below. */
export const idOf = ({ params }: Exchange): BlobId =>
  isBlobId(params.id) ? params.id : decodeParams(params).id

/** The query parameters; a name that occurs more than once has an array of values. */
const queryOf = ({ url }: Exchange) => {
  const start = url.indexOf("?")
  if (start === -1) return {}
  const all = new URLSearchParams(url.slice(start))
  const values = Array.from(new Set(all.keys()), (name) => {
    const values = all.getAll(name)
    return [name, values.length === 1 ? values[0] : values] as const
  })
  return Object.fromEntries(values)
}

/** The query of a put stream. */
export const putStreamQuery = (exchange: Exchange) => decodePutStream(queryOf(exchange))

/** The scope in the query. */
export const scopeOf = (exchange: Exchange) => decodeScope(queryOf(exchange)).scope

/**
 * With plain bytes, labels are headers `X-Label-<name>`. Header names are case-insensitive, so a
 * label's name becomes lower case. Names and values may be percent-encoded UTF-8.
 */
export const label_prefix = "x-label-"

/** Decodes percent-encoded UTF-8; any other text stays as it is. */
const decoded = (text: string) => {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

const hasLabels = (headers: DirectHeaders) => {
  for (const name in headers) if (name.startsWith(label_prefix)) return true
  return false
}

/** The labels in these headers, without validation of their number and length. */
export const decodedLabels = (headers: DirectHeaders) => {
  const labels = Object.entries(headers)
    .filter(([name]) => name.startsWith(label_prefix))
    .map(([name, value = ""]) => [decoded(name.slice(label_prefix.length)), decoded(value)])
  return Object.fromEntries(labels)
}

const no_labels: BlobLabels = {}

/** The labels in the headers of a put. */
export const headerLabels = ({ headers }: Exchange): BlobLabels =>
  hasLabels(headers) ? decodeLabels(decodedLabels(headers)) : no_labels

/** Whether a put is rejected if the blob exists. */
export const isConditional = ({ headers }: Exchange) => {
  const condition = headers["if-none-match"]?.trim()
  if (condition === undefined || condition === "*") return condition === "*"
  throw new InvalidArgument({ detail: "If-None-Match must be * in a put." })
}

/** A body's media type, without parameters. */
export const typeOf = ({ headers: { "content-type": type = "" } }: Exchange) =>
  type.split(";", 1)[0]?.trim().toLowerCase() ?? ""

/** The length of a body; undefined if it is not declared. */
export const lengthOf = ({ headers }: Exchange) => {
  const { "content-length": length, "transfer-encoding": coding } = headers
  return coding === undefined ? Number(length ?? 0) : undefined
}

/** The recipient of a body. */
export interface BodyTaker {
  /** Receives a piece, which no longer changes. A returned promise delays the next one. */
  readonly take: (bytes: Uint8Array) => Promise<unknown> | undefined
  /** The body has arrived in full. */
  readonly end: () => void
  /** The body breaks off, or the client has disconnected. */
  readonly drop: () => void
  /** Receives the error that `take` threw or rejected with. */
  readonly fail: (cause: unknown) => void
}

const continued = /^100-continue$/i

/** Whether the client waits for 100-continue before it sends the body. */
export const isExpectant = ({ headers: { expect } }: Exchange) =>
  expect !== undefined && continued.test(expect)

/** Reads the body of an exchange in pieces, no faster than the recipient takes them. */
export const readBody = (exchange: Exchange, { take, end, drop, fail }: BodyTaker) => {
  const { request, response } = exchange
  if (isExpectant(exchange)) response.writeContinue()
  const onData = (bytes: Uint8Array) => {
    try {
      const pending = take(bytes)
      if (pending === undefined || exchange.isOver()) return
      request.pause()
      pending.then(() => {
        if (!exchange.isOver()) request.resume()
      }, fail)
    } catch (cause) {
      fail(cause)
    }
  }
  const onEnd = () => {
    try {
      end()
    } catch (cause) {
      exchange.fail(cause)
    }
  }
  exchange.onEnd(() => {
    request.off("data", onData)
    request.off("end", onEnd)
    drop()
  })
  request.on("data", onData)
  request.on("end", onEnd)
}
