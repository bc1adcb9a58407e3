/**
 * Searches a range. JSON and CSV are sent once the search is complete, NDJSON line by line as
 * carriers are found.
 *
 * Source: document 3 §4 B, §7 B; decisions of document 3, carrier validation and carrier range.
 */
import { Cause, Effect, Exit, Layer, Schedule, Schema, Stream } from "effect"
import { type HttpServerRequest, HttpServerResponse } from "effect/http"
import { HttpApiBuilder } from "effect/http-api"
import { failureText, type Registry, type SearchFailed } from "#actors/carrier-search/registry.ts"
import { ResponseBuffers } from "#actors/carrier-search/response-buffer.ts"
import { CarrierSearchApi } from "#gateway/carrier-search/api.ts"
import { formatOf, media_types } from "#gateway/carrier-search/negotiation.ts"
import { type RawRange, rangeOf } from "#gateway/carrier-search/range.ts"
import { Registries } from "#gateway/carrier-search/registries.ts"
import { internal_error, type SearchTracker, trackSearch } from "#gateway/carrier-search/tracker.ts"
import { type Range, total } from "#schemas/carrier-search/carrier.ts"
import { csv_header, type Format, row_end } from "#schemas/carrier-search/format.ts"
import { type Failed, type Progress, Summary } from "#schemas/carrier-search/line.ts"
import { BadRange, NotAcceptable, RegistryFailed } from "#schemas/carrier-search/rejection.ts"

type Request = HttpServerRequest.HttpServerRequest

/** Twice a second, because clients may expect progress every second. */
const progress_interval = "500 millis"
/** A response up to this size is sent in one write. */
const one_write_bytes_max = 256 * 1024

const utf8 = new TextEncoder()

/** The text before and after the rows. */
const frames: Readonly<Record<"json" | "csv", readonly [before: Uint8Array, after: Uint8Array]>> = {
  json: [utf8.encode('{"carriers":['), utf8.encode("]}")],
  csv: [utf8.encode(csv_header), new Uint8Array(0)],
}

/** Headers of a response: its result may change, and depends on Accept. */
const headersOf = (format: Format, { start, end }: Range) => ({
  vary: "accept",
  "cache-control": "no-store",
  ...(format === "csv" && {
    "content-disposition": `attachment; filename="carriers-${start}-${end}.csv"`,
  }),
  // Stops proxies from buffering lines.
  ...(format === "ndjson" && { "x-accel-buffering": "no" }),
})

const contentTypes: Readonly<Record<Format, string>> = {
  ...media_types,
  csv: `${media_types.csv}; charset=utf-8`,
}

/** Counts the results; a number without one is a defect. */
const trackedRows = (registry: Registry["Service"], tracker: SearchTracker, format: Format) => {
  const { range } = tracker
  const numbers = total(range)
  const whole = Stream.suspend(() => {
    if (tracker.answered() === numbers) return Stream.empty
    return Stream.die(
      new Error(`The registry returned results for ${tracker.answered()} of ${numbers} numbers.`),
    )
  })
  return registry.search(range, format).pipe(
    Stream.map((piece) => {
      tracker.count(piece)
      return piece.rows
    }),
    Stream.filter((rows) => rows.length > 0),
    Stream.concat(whole),
  )
}

type Rows = Stream.Stream<Uint8Array, SearchFailed>

/** Completes the search before the response begins, so that a failure can be a 502. */
const respondComplete = Effect.fnUntraced(function* (
  rows: Rows,
  tracker: SearchTracker,
  format: "json" | "csv",
) {
  const buffers = yield* ResponseBuffers
  const buffer = yield* buffers.open
  yield* Stream.runForEach(rows, buffer.add).pipe(
    Effect.onExit((exit) => tracker.close(exit)),
    Effect.catchTag("BufferFailed", Effect.die),
    Effect.mapError((failed) => {
      return new RegistryFailed({ error: failureText(failed, total(tracker.range)) })
    }),
  )
  const [before, after] = frames[format]
  const cut = format === "json" ? row_end.json.length : 0
  const rows_bytes = Math.max(0, buffer.length() - cut)
  // One piece per chunk, because the server joins the pieces of a chunk.
  const body = Stream.make(before).pipe(
    Stream.concat(Stream.rechunk(buffer.read(rows_bytes), 1)),
    Stream.concat(Stream.make(after)),
    Stream.filter((bytes) => bytes.length > 0),
  )
  const headers = headersOf(format, tracker.range)
  const contentType = contentTypes[format]
  const contentLength = before.length + rows_bytes + after.length
  if (contentLength > one_write_bytes_max) {
    return HttpServerResponse.stream(body, { contentType, contentLength, headers })
  }
  const bytes = yield* Effect.orDie(Stream.mkUint8Array(body))
  return HttpServerResponse.uint8Array(bytes, { contentType, headers })
})

type Line = typeof Progress.Type | typeof Summary.Type | typeof Failed.Type

const line = (value: Line) => utf8.encode(`${JSON.stringify(value)}\n`)

const encodeSummary = Schema.encodeSync(Summary)

/** The last line after a failure, because the status 200 was already sent. */
const lastLine = (cause: Cause.Cause<SearchFailed>, numbers: number) => {
  const failure = cause.reasons.find(Cause.isFailReason)
  if (failure !== undefined) {
    return Effect.succeed(line({ error: failureText(failure.error, numbers) }))
  }
  return Effect.as(Effect.logError("A search failed.", cause), line({ error: internal_error }))
}

/** Sends rows as they are found, with progress; then the counts, or the error. */
const respondLines = Effect.fnUntraced(function* (rows: Rows, tracker: SearchTracker) {
  const numbers = total(tracker.range)
  const progress = () => {
    const [done, found] = [tracker.answered(), tracker.found()]
    return line({ progress: { done, total: numbers, found } })
  }
  const summary = () => {
    const { registry } = tracker
    const counts = { total: numbers, found: tracker.found() }
    return line(
      encodeSummary({ summary: { ...counts, duration_ms: tracker.durationMs(), registry } }),
    )
  }
  const ticks = Stream.map(Stream.fromSchedule(Schedule.spaced(progress_interval)), progress)
  const context = yield* Effect.context<never>()
  const body = Stream.sync(progress).pipe(
    Stream.concat(Stream.merge(rows, ticks, { haltStrategy: "left" })),
    Stream.concat(Stream.sync(summary)),
    Stream.onExit((exit) => tracker.close(exit)),
    Stream.catchCause((cause) =>
      Cause.hasInterruptsOnly(cause)
        ? Stream.failCause(cause)
        : Stream.fromEffect(Effect.provideContext(lastLine(cause, numbers), context)),
    ),
  )
  const headers = headersOf("ndjson", tracker.range)
  return HttpServerResponse.stream(body, { contentType: contentTypes.ndjson, headers })
})

/** The range and format of a request; `range_max`: maximum number of MC numbers. */
const validRequest = Effect.fnUntraced(function* (
  { headers }: Request,
  query: RawRange,
  range_max: number,
) {
  const range = rangeOf(query, range_max)
  if (typeof range === "string") return yield* new BadRange({ error: range })
  const format = formatOf(headers.accept)
  if (format !== undefined) return { range, format }
  const error = `a search returns ${Object.values(media_types).join(", ")}`
  return yield* new NotAcceptable({ error })
})

/** The response to HEAD, without a search or a fact. */
const headOnly = (format: Format, range: Range) =>
  HttpServerResponse.empty({
    status: 200,
    headers: { ...headersOf(format, range), "content-type": contentTypes[format] },
  })

const search = Effect.fnUntraced(function* (request: Request, query: RawRange, range_max: number) {
  const { range, format } = yield* validRequest(request, query, range_max)
  const { in_use } = yield* Registries
  const selected = yield* Effect.exit(in_use)
  const is_head = request.method === "HEAD"
  if (Exit.isFailure(selected)) {
    if (!is_head) yield* (yield* trackSearch(range, "none")).close(selected)
    const refused = Effect.failCause(selected.cause)
    return yield* Effect.mapError(refused, ({ detail }) => new RegistryFailed({ error: detail }))
  }
  if (is_head) return headOnly(format, range)
  const { name, registry } = selected.value
  const tracker = yield* trackSearch(range, name)
  const rows = trackedRows(registry, tracker, format)
  if (format === "ndjson") return yield* respondLines(rows, tracker)
  return yield* respondComplete(rows, tracker, format)
})

const sources = Effect.fnUntraced(function* () {
  const registries = yield* Registries
  return { sources: yield* registries.sources }
})

/** The handlers of CarrierSearchApi. `range_max`: maximum number of MC numbers of a search. */
export const searching = (range_max: number) =>
  Layer.mergeAll(
    HttpApiBuilder.group(CarrierSearchApi, "carriers", (handlers) =>
      handlers.handleAll({
        search: ({ request, query }) => search(request, query, range_max),
        sources,
      }),
    ),
  )
