/**
 * Hot gets: a blob's bytes or its one JSON message, straight from the engine to the connection.
 *
 * Source: document 1 §4 BlobService; DECISIONS, document 1, framing of streams, raw forms.
 */
import type { BlobEngine, BlobReading } from "#actors/blob-storage/blobs/engine.ts"
import { faultOf } from "#actors/blob-storage/blobs/fault.ts"
import { base64Length, utf8Length } from "#gateway/blob-storage/body/base64.ts"
import { askedRange, type Stretch } from "#gateway/blob-storage/direct/byte-range.ts"
import { after, rejectFault } from "#gateway/blob-storage/direct/refusal.ts"
import { getText, type Int64Form, statText } from "#gateway/blob-storage/direct/text.ts"
import { labelHeaders } from "#gateway/blob-storage/labels.ts"
import type { HotVisit } from "#gateway/direct.ts"
import { matchesTag } from "#gateway/representation.ts"
import type { BlobId, BlobMeta } from "#schemas/blob-storage/blob.ts"

export interface HotGets {
  readonly engine: Pick<BlobEngine, "get" | "getNow" | "stat">
  readonly int64: Int64Form
  /** Most base64 digits in a JSON answer. */
  readonly json_digits_max: number
}

type Headers = Readonly<Record<string, string>>

const no_labels: Headers = {}

/** Labels are rare, and so is what they cost. */
const labelsOf = ({ labels }: BlobMeta) => {
  for (const _name in labels) return labelHeaders(labels)
  return no_labels
}

const bytesHeaders = (id: BlobId, meta: BlobMeta, length: number): Headers => ({
  vary: "accept",
  etag: `"${id}"`,
  "accept-ranges": "bytes",
  ...labelsOf(meta),
  "content-type": "application/octet-stream",
  "content-length": `${length}`,
})

/** Waits where a response takes no more for now; ends waiting too where its client is gone. */
const makeTide = ({ response }: HotVisit) => {
  let wake: (() => void) | undefined
  const turn = () => {
    wake?.()
    wake = undefined
  }
  response.on("drain", turn)
  response.on("close", turn)
  return () =>
    new Promise<void>((resolve) => {
      wake = resolve
    })
}

/** Writes the windows, the next of which is read while the one before it goes out. */
const pour = async (
  visit: HotVisit,
  { giveBack }: BlobReading,
  windows: AsyncIterableIterator<Uint8Array>,
  first: IteratorResult<Uint8Array>,
  length: number,
) => {
  const { response } = visit
  const send = (window: Uint8Array) =>
    // Of what could not be written nobody says what the system still does with it.
    response.write(window, (error) => {
      if (!error) giveBack?.(window)
    })
  const ebb = makeTide(visit)
  let left = length
  for (let read = first; read.done !== true && !visit.isOver(); ) {
    left -= read.value.length
    const next = windows.next()
    // Awaited below, after the drain: meanwhile its failure must not count as nobody's.
    next.catch(() => undefined)
    if (!send(read.value)) await ebb()
    read = await next
  }
  if (visit.isOver()) return
  if (left !== 0) throw new Error(`The blob ended ${left} bytes too early.`)
  response.end()
}

/** Answers bytes of several windows; a fault before the head is an answer, later it cuts. */
const stream = async (
  visit: HotVisit,
  reading: BlobReading,
  status: 200 | 206,
  headers: Headers,
) => {
  const windows = reading.windows()
  try {
    const first = await windows.next().catch((cause) => rejectFault(visit, cause))
    if (first && visit.begin(status, headers)) {
      await pour(visit, reading, windows, first, Number(headers["content-length"]))
    }
  } finally {
    await windows.return?.()
  }
}

const send = (visit: HotVisit, reading: BlobReading, status: 200 | 206, headers: Headers) => {
  const { data } = reading
  if (data === undefined) stream(visit, reading, status, headers).catch(visit.fail)
  else if (`${data.length}` === headers["content-length"]) visit.answer(status, headers, data)
  // A byte too many would be read as the beginning of the next answer.
  else visit.fail(new Error(`The store gave ${data.length} bytes of ${headers["content-length"]}.`))
}

const sendAll = ({ engine }: HotGets, visit: HotVisit, id: BlobId) => {
  const sendIt = (reading: BlobReading) =>
    send(visit, reading, 200, bytesHeaders(id, reading.meta, Number(reading.meta.size)))
  // Of a 4 KiB blob that is at hand a third of the time went into waiting for what is there.
  const at_hand = engine.getNow?.(id)
  if (at_hand) sendIt(at_hand)
  else after(visit, engine.get(id, {}, visit.now()), sendIt)
}

const sendStretch = ({ engine }: HotGets, visit: HotVisit, id: BlobId, { start, end }: Stretch) =>
  after(visit, engine.get(id, { offset: start, length: end - start }, visit.now()), (reading) => {
    const content_range = `bytes ${start}-${end - 1}/${reading.meta.size}`
    const headers = bytesHeaders(id, reading.meta, end - start)
    send(visit, reading, 206, { ...headers, "content-range": content_range })
  })

/** GET and HEAD of plain bytes, all of them or the range that is asked for. */
export const getBytes = (gets: HotGets, visit: HotVisit, id: BlobId) => {
  const { headers, request } = visit
  const is_head = request.method === "HEAD"
  const condition = headers["if-none-match"]
  if (condition === undefined && headers.range === undefined && !is_head) {
    return sendAll(gets, visit, id)
  }
  after(visit, gets.engine.stat(id, "cluster"), (meta) => {
    const etag = `"${id}"`
    const size = Number(meta.size)
    if (matchesTag(condition, etag)) return visit.answer(304, { vary: "accept", etag })
    if (is_head) return visit.answer(200, bytesHeaders(id, meta, size))
    const asked = askedRange(headers, etag, size)
    // What cannot be satisfied has a form of its own, which the plain route knows.
    if (asked === "none") return visit.leave()
    return asked === "all" ? sendAll(gets, visit, id) : sendStretch(gets, visit, id, asked)
  })
}

const json_headers = { "content-type": "application/json" }

/** The headers of a JSON answer, as the plain route has them. */
export const jsonHeaders = (text: string): Headers => ({
  ...json_headers,
  "content-length": `${utf8Length(text)}`,
})

/** GET of one JSON message; what is not there in one piece is left to the plain route. */
export const getJson = ({ engine, int64, json_digits_max }: HotGets, visit: HotVisit, id: BlobId) =>
  after(visit, engine.get(id, {}, visit.now()), ({ data, meta }) => {
    if (data === undefined || base64Length(data.length) > json_digits_max) return visit.leave()
    const text = getText(data, meta, int64)
    visit.answer(200, { ...jsonHeaders(text), vary: "accept" }, text)
  })

/** GET of what is known of a blob, here or not. */
export const getStat = ({ engine, int64 }: HotGets, visit: HotVisit, id: BlobId) => {
  const answer = (text: string) => visit.answer(200, jsonHeaders(text), text)
  engine
    .stat(id)
    .then(
      (meta) => answer(statText(meta, int64)),
      (cause) => {
        if (faultOf(cause)._tag === "BlobNotFound") answer('{"exists":false}')
        else rejectFault(visit, cause)
      },
    )
    .catch(visit.fail)
}
