/**
 * Batch requests: the metadata or the bytes of many blobs, one line per blob in the order of the
 * request.
 *
 * Source: docs/decisions/0123-cluster-engine.md; DECISIONS, document 1, framing of streams.
 */
import { Clock, Effect, Schema, Stream } from "effect"
import { type HttpServerRequest, HttpServerResponse } from "effect/http"
import {
  type BlobReading,
  type BlobScope,
  Blobs,
  fromEngine,
} from "#actors/blob-storage/ports/engine.ts"
import { type BlobFault, faultOf } from "#actors/blob-storage/ports/fault.ts"
import { base64Encoder, base64Length, encodeBase64 } from "#gateway/blob-storage/body/base64.ts"
import { verify } from "#gateway/blob-storage/direct/streaming.ts"
import { toRejection } from "#gateway/blob-storage/fault.ts"
import { blob, failureBody } from "#gateway/envelope.ts"
import { refusedInput } from "#gateway/failure.ts"
import { Int64Form, stringify } from "#gateway/json.ts"
import {
  BatchRequest,
  BatchStat,
  type BlobId,
  BlobIdMessage,
  BlobMeta,
  stream_line_bytes_max,
} from "#schemas/blob-storage/blob.ts"
import { InvalidArgument, type Rejection, TooLarge } from "#schemas/blob-storage/rejection.ts"

type Request = HttpServerRequest.HttpServerRequest

const lines_type = "application/x-ndjson"
const utf8 = new TextEncoder()
const encodeId = Schema.encodeSync(BlobIdMessage)
const encodeMeta = Schema.encodeSync(BlobMeta)
const encodeStat = Schema.encodeSync(BatchStat)
const decodeIds = Schema.decodeUnknownEffect(BatchRequest)

const noJson = (where: string) => new InvalidArgument({ detail: `${where}: Expected valid JSON.` })

const parsed = (text: string, where: string) =>
  Effect.try({ try: (): unknown => JSON.parse(text), catch: () => noJson(where) })

/** The values in the body: a JSON array, or a value on each non-empty line. */
const valuesOf = (text: string): Effect.Effect<unknown, InvalidArgument> =>
  text.trimStart().startsWith("[")
    ? parsed(text, "body")
    : Effect.forEach(
        text.split("\n").filter((line) => line.trim() !== ""),
        (line, at) => parsed(line, `Message ${at + 1}`),
      )

/** The IDs of a batch. An invalid one is rejected with 400, and the error names its index. */
const idsOf = Effect.fnUntraced(function* (request: Request) {
  const values = yield* valuesOf(yield* Effect.orDie(request.text))
  return yield* Effect.mapError(decodeIds(values), (cause) => {
    const { detail, message } = refusedInput("Payload", cause, blob)
    return new InvalidArgument({ detail, ...(message === undefined ? {} : { message }) })
  })
})

type Bytes = Stream.Stream<Uint8Array, BlobFault>
/** A line as text, or, if it is long, as a stream that is read as it is sent. */
type Line = string | Bytes

const textOf = (text: string): Bytes => Stream.succeed(utf8.encode(text))

/** Concatenates lines; consecutive texts become one piece. */
const joined = (lines: ReadonlyArray<Line>): Bytes => {
  const pieces: Array<Line> = []
  for (const line of lines) {
    const last = pieces.at(-1)
    if (typeof line === "string" && typeof last === "string")
      pieces[pieces.length - 1] = last + line
    else pieces.push(line)
  }
  return Stream.fromIterable(pieces).pipe(
    Stream.map((piece) => (typeof piece === "string" ? textOf(piece) : piece)),
    Stream.flatten,
  )
}

/**
 * Responds with the lines of all blobs in order, produced `at_once` at a time and no faster than
 * the client reads. A rejected blob's line contains its error.
 */
const respondInLines = Effect.fnUntraced(function* (
  ids: ReadonlyArray<BlobId>,
  { at_once, group }: { readonly at_once: number; readonly group: number },
  lineOf: (id: BlobId) => Effect.Effect<Line, Rejection>,
) {
  const context = yield* Effect.context<never>()
  const lineOrError = (id: BlobId) =>
    Effect.catch(lineOf(id), (rejection) =>
      Effect.map(
        failureBody(rejection),
        (error): Line => `${JSON.stringify({ id: encodeId(id), error })}\n`,
      ),
    )
  const groups = Array.from({ length: Math.ceil(ids.length / group) }, (_, at) => at * group)
  const lines = Stream.fromIterable(groups).pipe(
    Stream.mapEffect((from) =>
      Effect.forEach(ids.slice(from, from + group), lineOrError, { concurrency: at_once }),
    ),
    Stream.map(joined),
    Stream.flatten,
    Stream.provideContext(context),
  )
  return HttpServerResponse.stream(lines, { contentType: lines_type })
})

/**
 * Lines have about 300 bytes. A silent node delays a group by 5 s for each round of concurrent
 * reads.
 */
const stats = { node: { at_once: 32, group: 500 }, cluster: { at_once: 32, group: 64 } }

/** POST /v1/blobs/stat. */
export const statBatch = Effect.fnUntraced(function* (request: Request, scope: BlobScope = "node") {
  const blobs = yield* Blobs
  const form = yield* Int64Form
  const lineOf = (id: BlobId) =>
    fromEngine(() => blobs.stat(id, scope)).pipe(
      Effect.map((meta) => ({ id, exists: true, meta })),
      Effect.catchTag("BlobNotFound", () => Effect.succeed({ id, exists: false })),
      Effect.map((found) => `${stringify(encodeStat(found), form)}\n`),
      Effect.mapError(toRejection),
    )
  return yield* respondInLines(yield* idsOf(request), stats[scope], lineOf)
})

/** Lines have up to 1.3 MB: a request holds up to 20 MiB of lines that are being built or sent. */
const gets = { at_once: 8, group: 8 }

/** Maximum size of a line without its data. */
const fields_bytes_max = 256 * 1024

const tooLong = (size: bigint) =>
  new TooLarge({
    detail: `The blob is too large for one line (${size} bytes): get its /stream instead.`,
  })

/** The line of a blob with several windows. Each window is read once the previous one is sent. */
async function* longLine(before: string, { windows, recycle }: BlobReading) {
  yield utf8.encode(before)
  const encoder = base64Encoder()
  for await (const window of windows()) {
    const digits = encoder.push(window)
    recycle?.(window)
    yield utf8.encode(digits)
  }
  yield utf8.encode(`${encoder.end()}"}\n`)
}

/** POST /v1/blobs/get. A blob with several windows is verified before its line begins. */
export const getBatch = Effect.fnUntraced(function* (request: Request) {
  const blobs = yield* Blobs
  const form = yield* Int64Form
  const lineOf = Effect.fnUntraced(function* (id: BlobId) {
    const at = yield* Clock.currentTimeNanos
    const reading = yield* Effect.mapError(
      fromEngine(() => blobs.get(id, {}, at)),
      toRejection,
    )
    const { meta, data } = reading
    if (base64Length(Number(meta.size)) + fields_bytes_max > stream_line_bytes_max) {
      return yield* tooLong(meta.size)
    }
    const fields = stringify({ id: encodeId(id), meta: encodeMeta(meta) }, form)
    const before = `${fields.slice(0, -1)},"data":"`
    if (data !== undefined) return `${before}${encodeBase64(data)}"}\n`
    yield* Effect.mapError(
      fromEngine((signal) => verify({ isOver: () => signal.aborted }, reading)),
      toRejection,
    )
    return Stream.suspend(() => Stream.fromAsyncIterable(longLine(before, reading), faultOf))
  })
  return yield* respondInLines(yield* idsOf(request), gets, lineOf)
})
