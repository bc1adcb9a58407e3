/**
 * Getting a blob: as one JSON message, as a stream of chunks, or as plain bytes.
 *
 * Source: document 1 §4 BlobService, rule 2; DECISIONS, document 1, framing of streams, integrity.
 */
import { Cause, Context, Effect, Schema, Stream } from "effect"
import { type HttpServerRequest, HttpServerResponse } from "effect/http"
import {
  type BlobRange,
  type BlobReadError,
  BlobStore,
  type OpenBlob,
} from "#actors/blob-storage/blobs/store.ts"
import { base64Encoder, base64Length, encodeBase64 } from "#gateway/blob-storage/body/base64.ts"
import { askedRange, prefersBytes, type Stretch } from "#gateway/blob-storage/direct/byte-range.ts"
import { worded } from "#gateway/blob-storage/fault.ts"
import { labelHeaders } from "#gateway/blob-storage/labels.ts"
import { failureBody } from "#gateway/envelope.ts"
import { Int64Form, stringify } from "#gateway/json.ts"
import { matchesTag } from "#gateway/representation.ts"
import {
  type BlobId,
  BlobMeta,
  get_chunk_bytes_max,
  json_body_bytes_max,
} from "#schemas/blob-storage/blob.ts"
import { Internal, OutOfRange, type Rejection, TooLarge } from "#schemas/blob-storage/rejection.ts"

type Request = HttpServerRequest.HttpServerRequest

const encodeMeta = Schema.encodeSync(BlobMeta)
const encodeOutOfRange = Schema.encodeSync(OutOfRange)
const utf8 = new TextEncoder()

/** Both forms are at one address, and Accept chooses. */
const varied = { vary: "accept" }
const bytes_type = "application/octet-stream"
const json_type = "application/json"
const lines_type = "application/x-ndjson"

const is_head = ({ method }: Request) => method === "HEAD"

const opened = Effect.fnUntraced(function* (id: BlobId, range?: BlobRange) {
  const store = yield* BlobStore
  return yield* Effect.mapError(store.get(id, range), worded)
})

/** What is known of a blob that a get would answer, from wherever that would have it. */
const known = Effect.fnUntraced(function* (id: BlobId) {
  const store = yield* BlobStore
  return yield* Effect.mapError(store.stat(id, "cluster"), worded)
})

/** A head alone, which says what its body's length would be. */
const head = (content_length: number | undefined, contentType: string, headers = {}) =>
  HttpServerResponse.empty({
    status: 200,
    headers: {
      ...varied,
      ...headers,
      "content-type": contentType,
      ...(content_length === undefined ? {} : { "content-length": String(content_length) }),
    },
  })

/** Single pieces, so that the next is made only when the client has taken the one before. */
const singly = ({ bytes }: OpenBlob) => Stream.rechunk(bytes, 1)

/** What stands before `data`'s digits and behind them in a GetResponse. */
const jsonFrame = (meta: BlobMeta) =>
  Effect.map(Int64Form, (form) => ({
    before: utf8.encode('{"data":"'),
    after: utf8.encode(`","meta":${stringify(encodeMeta(meta), form)}}`),
  }))

/**
 * Most base64 digits in a JSON answer: as many as a JSON request may have (`json_body_bytes_max`),
 * so that what was put by JSON can be got by it.
 */
export const JsonDigitsMax = Context.Reference<number>("gateway/JsonDigitsMax", {
  defaultValue: () => json_body_bytes_max,
})

const fitsJson = Effect.fnUntraced(function* ({ size }: BlobMeta) {
  if (base64Length(Number(size)) <= (yield* JsonDigitsMax)) return
  const detail =
    `The blob's ${size} bytes are too many for one JSON answer:` +
    " get /stream, or ask for application/octet-stream."
  return yield* new TooLarge({ detail })
})

/** The pieces as one base64 text. */
export const asBase64 = (blob: OpenBlob) => {
  const encoder = base64Encoder()
  const groups = Stream.map(singly(blob), encoder.push)
  return Stream.concat(
    groups,
    Stream.suspend(() => Stream.succeed(encoder.end())),
  ).pipe(Stream.map((text) => utf8.encode(text)))
}

/**
 * One JSON message. A blob of several pieces is read through once before the answer begins: it is
 * whole or an error, never a torn message, and no blob is held in memory for a slow client.
 */
const getJson = Effect.fnUntraced(function* (request: Request, id: BlobId) {
  if (is_head(request)) {
    const meta = yield* known(id)
    yield* fitsJson(meta)
    const { before, after } = yield* jsonFrame(meta)
    return head(before.length + base64Length(Number(meta.size)) + after.length, json_type)
  }
  const blob = yield* opened(id)
  const { meta } = blob
  yield* fitsJson(meta)
  const { before, after } = yield* jsonFrame(meta)
  const contentLength = before.length + base64Length(Number(meta.size)) + after.length
  const body = Stream.succeed(before).pipe(
    Stream.concat(asBase64(blob)),
    Stream.concat(Stream.succeed(after)),
  )
  if (Number(meta.size) <= get_chunk_bytes_max) {
    const whole = yield* Effect.mapError(Stream.mkUint8Array(body), worded)
    return HttpServerResponse.uint8Array(whole, { contentType: json_type, headers: varied })
  }
  yield* Effect.mapError(Stream.runDrain(blob.bytes), worded)
  return HttpServerResponse.stream(body, { contentType: json_type, contentLength, headers: varied })
})

const line = (value: unknown) => utf8.encode(`${JSON.stringify(value)}\n`)

const chunkLine = (data: Uint8Array, final: boolean) =>
  utf8.encode(`{"data":"${encodeBase64(data)}","final":${final}}\n`)

const short = new Internal({ detail: "The blob ended too early." })

/** GetChunk lines; the last has final true, and comes only when all bytes have come. */
const chunkLines = (blob: OpenBlob) => {
  const size = Number(blob.meta.size)
  let sent = 0
  const chunks = Stream.map(singly(blob), (data) => {
    sent += data.length
    return chunkLine(data, sent === size)
  })
  if (size === 0) return Stream.succeed(chunkLine(new Uint8Array(0), true))
  const end = Stream.suspend(() => (sent === size ? Stream.empty : Stream.fail(short)))
  return Stream.concat(chunks, end)
}

/** The rejection that a stream's failure is; a defect is logged and says no more than INTERNAL. */
const failureIn = (cause: Cause.Cause<BlobReadError | Internal>): Effect.Effect<Rejection> => {
  const failure = cause.reasons.find(Cause.isFailReason)
  return failure === undefined
    ? Effect.as(Effect.logError("A stream failed.", cause), new Internal({ detail: "" }))
    : Effect.succeed(worded(failure.error))
}

/** After the 200 a failure is the stream's last line, and no final chunk comes before it. */
const endingInError = <E extends BlobReadError | Internal>(
  stream: Stream.Stream<Uint8Array, E>,
  context: Context.Context<never>,
) =>
  Stream.catchCause(stream, (cause) =>
    Cause.hasInterruptsOnly(cause)
      ? Stream.failCause(cause)
      : Stream.fromEffect(
          failureIn(cause).pipe(
            Effect.flatMap(failureBody),
            Effect.map((error) => line({ error })),
            Effect.provideContext(context),
          ),
        ),
  )

const getLines = Effect.fnUntraced(function* (request: Request, id: BlobId) {
  if (is_head(request)) {
    yield* known(id)
    return head(undefined, lines_type)
  }
  const blob = yield* opened(id)
  const context = yield* Effect.context<never>()
  return HttpServerResponse.stream(endingInError(chunkLines(blob), context), {
    contentType: lines_type,
    headers: varied,
  })
})

const unsatisfiable = (size: number, headers: Readonly<Record<string, string>>) =>
  HttpServerResponse.jsonUnsafe(
    encodeOutOfRange(new OutOfRange({ detail: `The blob has ${size} bytes.` })),
    { status: 416, headers: { ...headers, "content-range": `bytes */${size}` } },
  )

/** The bytes of a stretch; a failure after the head cuts the connection. */
const bytesOf = Effect.fnUntraced(function* (
  id: BlobId,
  { start, end }: Stretch,
  status: 200 | 206,
  headers: Readonly<Record<string, string>>,
) {
  const blob = yield* opened(id, { offset: start, length: end - start })
  return HttpServerResponse.stream(singly(blob), {
    status,
    contentType: bytes_type,
    contentLength: end - start,
    headers,
  })
})

/** Plain bytes, all of them or the range that is asked for. */
const getBytes = Effect.fnUntraced(function* (request: Request, id: BlobId) {
  const meta = yield* known(id)
  const size = Number(meta.size)
  const tag = `"${id}"`
  const headers = {
    ...varied,
    etag: tag,
    "accept-ranges": "bytes",
    ...labelHeaders(meta.labels),
  }
  if (matchesTag(request.headers["if-none-match"], tag)) {
    return HttpServerResponse.empty({ status: 304, headers: { ...varied, etag: tag } })
  }
  if (is_head(request)) return head(size, bytes_type, headers)
  const asked = askedRange(request.headers, tag, size)
  if (asked === "none") return unsatisfiable(size, { ...varied, etag: tag })
  if (asked === "all") return yield* bytesOf(id, { start: 0, end: size }, 200, headers)
  const content_range = `bytes ${asked.start}-${asked.end - 1}/${size}`
  return yield* bytesOf(id, asked, 206, { ...headers, "content-range": content_range })
})

const isRaw = ({ headers }: Request) => prefersBytes(headers.accept)

/** GET and HEAD /v1/blobs/{id}. */
export const get = (request: Request, id: BlobId) =>
  isRaw(request) ? getBytes(request, id) : getJson(request, id)

/** GET and HEAD /v1/blobs/{id}/stream. */
export const getStream = (request: Request, id: BlobId) =>
  isRaw(request) ? getBytes(request, id) : getLines(request, id)
