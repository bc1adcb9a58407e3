/**
 * Responds to gets with JSON: one message, or a stream of chunks with one line each.
 *
 * Source: document 1 §4 BlobService, rule 2; DECISIONS, document 1, framing of streams, integrity.
 */
import type { BlobReading } from "#actors/blob-storage/ports/engine.ts"
import { base64Encoder, base64Length, encodeBase64 } from "#gateway/blob-storage/body/base64.ts"
import { type DirectGets, varied } from "#gateway/blob-storage/direct/get.ts"
import {
  after,
  getFrame,
  jsonHeaders,
  reject,
  rejectCause,
  rejectionBody,
  utf8Length,
} from "#gateway/blob-storage/direct/response.ts"
import {
  beginStream,
  eachWindow,
  sendWindows,
  verify,
  withWindows,
} from "#gateway/blob-storage/direct/streaming.ts"
import type { Exchange } from "#gateway/direct.ts"
import type { BlobId, BlobMeta } from "#schemas/blob-storage/blob.ts"
import { TooLarge } from "#schemas/blob-storage/rejection.ts"

const isHead = ({ request }: Exchange) => request.method === "HEAD"

const tooLong = ({ size }: BlobMeta) =>
  new TooLarge({
    detail:
      `The blob is too large for one JSON response (${size} bytes):` +
      " get its /stream instead, or send Accept: application/octet-stream.",
  })

/** The text before and after a message's digits, and the headers of the response. */
const messageOf = ({ int64 }: DirectGets, meta: BlobMeta) => {
  const { before, after } = getFrame(meta, int64)
  const digits = base64Length(Number(meta.size))
  const headers = {
    ...varied,
    "content-type": "application/json",
    "content-length": `${before.length + digits + utf8Length(after)}`,
  }
  return { before, after, headers }
}

/**
 * Sends a message with several windows. They are read twice: first to verify them, then to send
 * them.
 */
const sendLarge = async (gets: DirectGets, exchange: Exchange, reading: BlobReading) => {
  const { before, after, headers } = messageOf(gets, reading.meta)
  await verify(exchange, reading)
  const head = { status: 200, headers, length: Number(reading.meta.size) } as const
  await sendWindows(exchange, reading, head, async (write, each) => {
    const encoder = base64Encoder()
    await write(before)
    await each(async (window) => {
      const digits = encoder.push(window)
      reading.recycle?.(window)
      await write(digits)
    })
    return encoder.end() + after
  })
}

/** GET and HEAD of one JSON message. */
export const getJson = (gets: DirectGets, exchange: Exchange, id: BlobId) => {
  const fits = (meta: BlobMeta) => base64Length(Number(meta.size)) <= gets.json_digits_max
  if (isHead(exchange)) {
    return after(exchange, gets.engine.stat(id, "cluster"), (meta) => {
      if (fits(meta)) exchange.answer(200, messageOf(gets, meta).headers)
      else reject(exchange, tooLong(meta))
    })
  }
  after(exchange, gets.engine.get(id, {}, exchange.now()), (reading) => {
    const { data, meta } = reading
    if (!fits(meta)) return reject(exchange, tooLong(meta))
    if (data === undefined) {
      return void sendLarge(gets, exchange, reading).catch((cause) => rejectCause(exchange, cause))
    }
    const { before, after } = getFrame(meta, gets.int64)
    const text = before + encodeBase64(data) + after
    exchange.answer(200, { ...jsonHeaders(text), ...varied }, text)
  })
}

const lines_headers = { ...varied, "content-type": "application/x-ndjson" }

const chunkLine = (data: Uint8Array, is_final: boolean) =>
  `{"data":"${encodeBase64(data)}","final":${is_final}}\n`

/**
 * Sends a line for each window. After a fault, the last line has the error and no chunk is final.
 */
const sendLines = async (exchange: Exchange, reading: BlobReading) => {
  const write = beginStream(exchange, 200, lines_headers)
  if (write === undefined) return
  try {
    await withWindows(reading, (windows, first) =>
      eachWindow(exchange, windows, first, Number(reading.meta.size), async (window, is_last) => {
        const line = chunkLine(window, is_last)
        reading.recycle?.(window)
        await write(line)
      }),
    )
  } catch (cause) {
    await write(`${JSON.stringify({ error: rejectionBody(exchange, cause) })}\n`)
  }
  if (!exchange.isOver()) exchange.response.end()
}

/** GET and HEAD of a stream of chunks. */
export const getLines = ({ engine }: DirectGets, exchange: Exchange, id: BlobId) => {
  if (isHead(exchange)) {
    return after(exchange, engine.stat(id, "cluster"), () => exchange.answer(200, lines_headers))
  }
  after(exchange, engine.get(id, {}, exchange.now()), (reading) => {
    const { data } = reading
    if (data === undefined) return void sendLines(exchange, reading)
    if (!exchange.begin(200, lines_headers)) return
    exchange.response.end(chunkLine(data, true))
  })
}
