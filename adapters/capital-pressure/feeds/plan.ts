/**
 * What is asked of a publisher, and how its answer is read: a plan, which is data and plain
 * functions until the client asks.
 */
import { Effect, type Redacted, Result, Schema } from "effect"
import { FeedFailed } from "#actors/capital-pressure/feeds.ts"
import type { Series } from "#projections/capital-pressure/store.ts"
import { detailOf } from "#schemas/capital-pressure/feed.ts"

/** Publishers, their addresses, and the least time from one request to the next at each. */
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
  // It limits whole networks: asked more slowly than any of the others.
  yahoo: { name: "Yahoo", base: "https://query1.finance.yahoo.com", spacing_ms: 1000 },
  stooq: { name: "Stooq", base: "https://stooq.com", spacing_ms: 1000 },
} as const

export type Publisher = keyof typeof publishers

export interface FeedRequest {
  readonly publisher: Publisher
  /** From "/" on, with its query but for the secret. */
  readonly path: string
  /** Goes into the query when it is sent, and nowhere else. `setting` is where a person gave it. */
  readonly secret?: {
    readonly name: string
    readonly value: Redacted.Redacted<string>
    readonly setting: string
  }
  /** Bytes of an answer, unpacked. */
  readonly bytes_max: number
}

/** All that is published of a series since 1950, day by day, is below 1 MB. */
export const bytes_max_default = 64 * 1024 * 1024

/** An answer that says something else than it should; `reason` ends without a full stop. */
export class Unreadable extends Schema.TaggedError<Unreadable>()("Unreadable", {
  reason: Schema.String,
}) {}

/** One request, and what its answer says; `today` is the last day that it may tell of. */
export interface FeedPart {
  readonly request: FeedRequest
  readonly read: (bytes: Uint8Array, today: number) => Effect.Effect<Series, Unreadable>
}

export interface FeedPlan {
  readonly parts: ReadonlyArray<FeedPart>
  /** The values that are stored, of what each part says. */
  readonly combine: (parts: ReadonlyArray<Series>) => Series
}

const no_series: Series = { days: new Int32Array(0), values: new Float64Array(0) }

/** A plan whose one answer is stored as it is. */
export const plain = (part: FeedPart): FeedPlan => ({
  parts: [part],
  combine: ([series]) => series ?? no_series,
})

export const unreadable = (reason: string) => Effect.fail(new Unreadable({ reason }))

/** A pure reading as an effect. */
export const lifted = <A>(read: Result.Result<A, string>): Effect.Effect<A, Unreadable> =>
  Result.isSuccess(read) ? Effect.succeed(read.success) : unreadable(read.failure)

/** What a person may do about a feed that failed. */
export const advice = {
  later: "It is asked again at the next ingest.",
  form: "Its form may have changed: until almanac reads it, use ingest --source file:DIR.",
  moved: "It may have moved: until almanac knows where, use ingest --source file:DIR.",
  refused: "Set capital.contact to say who asks, or fetch it from another network.",
  network: "See that this machine reaches it; it is asked again at the next ingest.",
  clock: "See to this machine's clock and certificate authorities: verification stays on.",
} as const

/** What a publisher wrote is quoted only this far. */
const quote_chars_max = 60

/** `reason` and `next` are for people: a clause without its full stop, and a sentence. */
export const feedFailed = (who: string, reason: string, next: string) =>
  new FeedFailed({ detail: detailOf(`${who} ${reason}. ${next}`) })

/** Outside text, short and without control characters. */
export const quoted = (text: string) => {
  const clean = text.replaceAll(/\p{C}+/gu, " ").trim()
  return clean.length <= quote_chars_max ? clean : `${clean.slice(0, quote_chars_max)}...`
}

const utf8 = new TextDecoder("utf-8", { fatal: true })

/** The answer as text; a web page, an empty answer and other bytes than UTF-8 are not readable. */
export const textOf = (bytes: Uint8Array): Result.Result<string, string> => {
  const text = Result.try({
    try: () => utf8.decode(bytes),
    catch: () => "answered bytes that are no text",
  })
  return Result.flatMap(text, (all) => {
    const start = all.trimStart()
    if (start === "") return Result.fail("answered nothing")
    return start.startsWith("<")
      ? Result.fail("answered a web page, not data")
      : Result.succeed(all)
  })
}

/** The answer's JSON by its schema. */
export const jsonOf = <A>(schema: Schema.Decoder<A>, bytes: Uint8Array): Result.Result<A, string> =>
  Result.flatMap(textOf(bytes), (text) => {
    const decoded = Schema.decodeUnknownOption(Schema.fromJsonString(schema))(text)
    return decoded._tag === "Some"
      ? Result.succeed(decoded.value)
      : Result.fail("answered JSON of another form than it has")
  })
