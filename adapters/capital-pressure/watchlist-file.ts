/**
 * Reads the operator's watchlist of price targets.
 *
 * Source: decisions of document 3, metric registry (watchlist); market facts, A3.
 */
import { Effect, Option, Result, Schema } from "effect"
import { quoted } from "#adapters/capital-pressure/feeds/plan.ts"
import { findBounded } from "#files"
import { CalendarDate } from "#schemas/capital-pressure/day.ts"
import { Ticker, type WatchlistTarget, watchlist } from "#schemas/capital-pressure/watchlist.ts"

/** The file is invalid; the message is one line with the file and entry. */
export class WatchlistInvalid extends Schema.TaggedError<WatchlistInvalid>()("WatchlistInvalid", {
  message: Schema.String,
}) {}

/** Eight entries take 1 KB. */
const file_bytes_max = 65_536

const Entry = Schema.Struct({
  ticker: Ticker,
  target: Schema.Finite.check(Schema.isGreaterThan(0)),
  fwd_pe: Schema.optionalKey(Schema.NullOr(Schema.Finite)),
  set_on: Schema.optionalKey(Schema.NullOr(CalendarDate)),
})

const Entries = Schema.fromJsonString(Schema.Array(Schema.Record(Schema.String, Schema.Unknown)))

/**
 * A target for each of the eight tickers, in order: `[{ticker, target, fwd_pe?, set_on?}]`. A
 * ticker that is not in the file has the target 0, "not set". Without a file, all tickers do.
 */
export const readWatchlist = (
  path: string,
): Effect.Effect<ReadonlyArray<WatchlistTarget>, WatchlistInvalid> =>
  findBounded(path, file_bytes_max).pipe(
    Effect.mapError(({ message }) => new WatchlistInvalid({ message })),
    Effect.flatMap((text) => {
      const entries = Option.isNone(text) ? Result.succeed([]) : parseEntries(text.value)
      return Result.isSuccess(entries)
        ? Effect.succeed(targetsOf(entries.success))
        : Effect.fail(new WatchlistInvalid({ message: `${path}: ${entries.failure}` }))
    }),
  )

type WatchlistEntry = typeof Entry.Type

const targetsOf = (entries: ReadonlyArray<WatchlistEntry>): ReadonlyArray<WatchlistTarget> =>
  watchlist.map(({ ticker }) => {
    const entry = entries.find((one) => one.ticker === ticker)
    const { target = 0, fwd_pe = null, set_on = null } = entry ?? {}
    return { ticker, target, fwd_pe, set_on }
  })

const fields: ReadonlyArray<string> = ["ticker", "target", "fwd_pe", "set_on"]

const parseEntries = (text: string): Result.Result<ReadonlyArray<WatchlistEntry>, string> => {
  const parsed = Schema.decodeUnknownOption(Entries)(text.replace(/^\uFEFF/, ""))
  if (Option.isNone(parsed)) return Result.fail("is not a JSON array of objects.")
  const entries: Array<WatchlistEntry> = []
  for (const [n, raw] of parsed.value.entries()) {
    const name = typeof raw.ticker === "string" ? ` (${quoted(raw.ticker)})` : ""
    const entry_name = `entry ${n + 1}${name}`
    const unknown_field = Object.keys(raw).find((field) => !fields.includes(field))
    if (unknown_field !== undefined)
      return Result.fail(`${entry_name} has the unknown field ${quoted(unknown_field)}.`)
    const entry = Schema.decodeUnknownOption(Entry)(raw)
    if (Option.isNone(entry)) return Result.fail(`${entry_name} ${problemOf(raw)}`)
    if (entries.some(({ ticker }) => ticker === entry.value.ticker)) {
      return Result.fail(`${entry_name} is listed twice.`)
    }
    entries.push(entry.value)
  }
  return Result.succeed(entries)
}

/** Describes the first invalid field. */
const problemOf = (raw: Readonly<Record<string, unknown>>) => {
  const is = (field: "ticker" | "target" | "fwd_pe") =>
    raw[field] === undefined && field === "fwd_pe"
      ? true
      : Option.isSome(Schema.decodeUnknownOption(Entry.fields[field])(raw[field]))
  if (!is("ticker")) return `needs a ticker of ${Ticker.literals.join(", ")}.`
  if (!is("target")) return "needs a target above 0, in USD."
  return is("fwd_pe")
    ? "needs a set_on of the form YYYY-MM-DD."
    : "needs a fwd_pe that is a number, or no fwd_pe."
}
