/**
 * The plan of a feed: the requests to publishers, and the functions that parse and combine their
 * responses.
 */
import { Effect, type Redacted, Result, Schema } from "effect"
import { FeedFailed } from "#actors/capital-pressure/feeds.ts"
import type { Series } from "#projections/capital-pressure/store.ts"
import { detailOf } from "#schemas/capital-pressure/feed.ts"

/** The publishers, with their address and the minimum spacing between requests. */
export const publishers = {
  fred: { name: "FRED", base: "https://fred.stlouisfed.org", spacing_ms: 500 },
  // 120 requests a minute for a key (market facts, A1.4).
  fred_api: { name: "FRED API", base: "https://api.stlouisfed.org", spacing_ms: 500 },
  ofr: { name: "OFR", base: "https://www.financialresearch.gov", spacing_ms: 500 },
  cftc: { name: "CFTC", base: "https://publicreporting.cftc.gov", spacing_ms: 500 },
  cboe: { name: "Cboe", base: "https://cdn.cboe.com", spacing_ms: 500 },
  finra: { name: "FINRA", base: "https://www.finra.org", spacing_ms: 500 },
  fiscaldata: {
    name: "FiscalData",
    base: "https://api.fiscaldata.treasury.gov",
    spacing_ms: 500,
  },
  // It limits whole networks, so its requests are spaced more widely.
  yahoo: { name: "Yahoo", base: "https://query1.finance.yahoo.com", spacing_ms: 1000 },
  stooq: { name: "Stooq", base: "https://stooq.com", spacing_ms: 1000 },
} as const

export type Publisher = keyof typeof publishers

export interface FeedRequest {
  readonly publisher: Publisher
  /** The path and query without the secret. */
  readonly path: string
  /** Added to the query only when the request is sent. `setting` is the name of its setting. */
  readonly secret?: {
    readonly name: string
    readonly value: Redacted.Redacted<string>
    readonly setting: string
  }
  /** The size limit of the unpacked response. */
  readonly bytes_max: number
}

/** A daily series since 1950 is less than 1 MB. */
export const bytes_max_default = 64 * 1024 * 1024

/** A response with unexpected content. `reason` has no full stop. */
export class Unreadable extends Schema.TaggedError<Unreadable>()("Unreadable", {
  reason: Schema.String,
}) {}

/** A request and the parser of its response, which must not contain days after `today`. */
export interface FeedPart {
  readonly request: FeedRequest
  readonly read: (bytes: Uint8Array, today: number) => Effect.Effect<Series, Unreadable>
}

export interface FeedPlan {
  readonly parts: ReadonlyArray<FeedPart>
  /** Combines the parts to the stored values. */
  readonly combine: (parts: ReadonlyArray<Series>) => Series
}

const no_series: Series = { days: new Int32Array(0), values: new Float64Array(0) }

/** A plan with a single part, which is stored unchanged. */
export const singlePartPlan = (part: FeedPart): FeedPlan => ({
  parts: [part],
  combine: ([series]) => series ?? no_series,
})

export const unreadable = (reason: string) => Effect.fail(new Unreadable({ reason }))

/** Converts a Result to an effect. */
export const fromResult = <A>(read: Result.Result<A, string>): Effect.Effect<A, Unreadable> =>
  Result.isSuccess(read) ? Effect.succeed(read.success) : unreadable(read.failure)

/** Remedies for a failed feed. */
export const advice = {
  later: "The next ingest requests it again.",
  form: "Its format may have changed: until Almanac supports it, use ingest --source file:DIR.",
  moved: "It may have moved: until Almanac supports its new address, use ingest --source file:DIR.",
  refused: "Set capital.contact to identify yourself, or fetch it from another network.",
  network: "Check that this machine can reach it; the next ingest requests it again.",
  clock: "Check this machine's clock and CA certificates: verification cannot be turned off.",
} as const

/** The longest quotation of a publisher's text. */
const quote_chars_max = 60

/** Builds the error text: `reason` is a clause without a full stop, `next` a sentence. */
export const feedFailed = (subject: string, reason: string, next: string) =>
  new FeedFailed({ detail: detailOf(`${subject} ${reason}. ${next}`) })

/** Shortens external text and removes control characters. */
export const quoted = (text: string) => {
  const clean = text.replaceAll(/\p{C}+/gu, " ").trim()
  return clean.length <= quote_chars_max ? clean : `${clean.slice(0, quote_chars_max)}...`
}

const utf8 = new TextDecoder("utf-8", { fatal: true })

/** Decodes UTF-8. Rejects an empty response and a web page. */
export const textOf = (bytes: Uint8Array): Result.Result<string, string> => {
  const text = Result.try({
    try: () => utf8.decode(bytes),
    catch: () => "returned bytes that are not text",
  })
  return Result.flatMap(text, (all) => {
    const start = all.trimStart()
    if (start === "") return Result.fail("returned nothing")
    return start.startsWith("<")
      ? Result.fail("returned a web page instead of data")
      : Result.succeed(all)
  })
}

/** Decodes JSON by a schema. */
export const jsonOf = <A>(schema: Schema.Decoder<A>, bytes: Uint8Array): Result.Result<A, string> =>
  Result.flatMap(textOf(bytes), (text) => {
    const decoded = Schema.decodeUnknownOption(Schema.fromJsonString(schema))(text)
    return decoded._tag === "Some"
      ? Result.succeed(decoded.value)
      : Result.fail("returned JSON in an unexpected format")
  })
