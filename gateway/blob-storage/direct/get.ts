/**
 * Responds to gets with plain bytes, directly from the engine to the connection. Also the parts
 * that all gets share.
 *
 * Source: document 1 §4 BlobService, rule 2; DECISIONS, document 1, framing of streams, raw forms.
 */
import type { BlobEngine, BlobReading } from "#actors/blob-storage/ports/engine.ts"
import { type ByteRange, requestedRange } from "#gateway/blob-storage/direct/byte-range.ts"
import {
  after,
  type Int64Form,
  labelHeaders,
  reject,
} from "#gateway/blob-storage/direct/response.ts"
import { sendWindows } from "#gateway/blob-storage/direct/streaming.ts"
import type { Exchange } from "#gateway/direct.ts"
import { matchesTag } from "#gateway/representation.ts"
import type { BlobId, BlobMeta } from "#schemas/blob-storage/blob.ts"
import { OutOfRange } from "#schemas/blob-storage/rejection.ts"

export interface DirectGets {
  readonly engine: Pick<BlobEngine, "get" | "getCached" | "stat">
  readonly int64: Int64Form
  /** Maximum number of base64 digits in a JSON response. */
  readonly json_digits_max: number
}

type Headers = Readonly<Record<string, string>>

const no_labels: Headers = {}

/** Labels are rare, so blobs without them get a shared object. */
const labelsOf = ({ labels }: BlobMeta) => {
  for (const _name in labels) return labelHeaders(labels)
  return no_labels
}

/** One URL serves JSON and bytes, depending on Accept. */
export const varied: Headers = { vary: "accept" }

const bytesHeaders = (id: BlobId, meta: BlobMeta, length: number): Headers => ({
  ...varied,
  etag: `"${id}"`,
  "accept-ranges": "bytes",
  ...labelsOf(meta),
  "content-type": "application/octet-stream",
  "content-length": `${length}`,
})

/** Responds with the bytes of several windows. */
const stream = (exchange: Exchange, reading: BlobReading, status: 200 | 206, headers: Headers) => {
  const length = Number(headers["content-length"])
  return sendWindows(exchange, reading, { status, headers, length }, async (write, each) => {
    await each((window) => write(window, () => reading.recycle?.(window)))
    return undefined
  })
}

const send = (exchange: Exchange, reading: BlobReading, status: 200 | 206, headers: Headers) => {
  const { data } = reading
  if (data === undefined) void stream(exchange, reading, status, headers)
  else if (`${data.length}` === headers["content-length"]) exchange.answer(status, headers, data)
  // A client would treat an extra byte as the beginning of the next response.
  else {
    const expected = headers["content-length"]
    exchange.fail(new Error(`The store returned ${data.length} of ${expected} bytes.`))
  }
}

const sendAll = ({ engine }: DirectGets, exchange: Exchange, id: BlobId) => {
  const sendIt = (reading: BlobReading) =>
    send(exchange, reading, 200, bytesHeaders(id, reading.meta, Number(reading.meta.size)))
  // Awaiting a promise would take a third of the time for a 4 KiB blob in memory.
  const at_hand = engine.getCached?.(id)
  if (at_hand) sendIt(at_hand)
  else after(exchange, engine.get(id, {}, exchange.now()), sendIt)
}

const sendRange = (
  { engine }: DirectGets,
  exchange: Exchange,
  id: BlobId,
  { start, end }: ByteRange,
) => {
  const range = { offset: start, length: end - start }
  after(exchange, engine.get(id, range, exchange.now()), (reading) => {
    const content_range = `bytes ${start}-${end - 1}/${reading.meta.size}`
    const headers = bytesHeaders(id, reading.meta, end - start)
    send(exchange, reading, 206, { ...headers, "content-range": content_range })
  })
}

/** GET and HEAD of plain bytes: the whole blob or the requested range. */
export const getBytes = (gets: DirectGets, exchange: Exchange, id: BlobId) => {
  const { headers, request } = exchange
  const is_head = request.method === "HEAD"
  const condition = headers["if-none-match"]
  if (condition === undefined && headers.range === undefined && !is_head) {
    return sendAll(gets, exchange, id)
  }
  after(exchange, gets.engine.stat(id, "cluster"), (meta) => {
    const etag = `"${id}"`
    const size = Number(meta.size)
    if (matchesTag(condition, etag)) return exchange.answer(304, { ...varied, etag })
    if (is_head) return exchange.answer(200, bytesHeaders(id, meta, size))
    const range = requestedRange(headers, etag, size)
    if (range === "none") {
      const rejection = new OutOfRange({
        detail: `The range is outside the blob, which has ${size} bytes.`,
      })
      return reject(exchange, rejection, { ...varied, etag, "content-range": `bytes */${size}` })
    }
    if (range === "all") return sendAll(gets, exchange, id)
    sendRange(gets, exchange, id, range)
  })
}
