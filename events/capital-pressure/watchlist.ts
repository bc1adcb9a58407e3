/** Events of the watchlist. Stream: capital-pressure.watchlist.main. */
import { Schema, Struct } from "effect"
import { SetWatchlist } from "#schemas/capital-pressure/watchlist.ts"
import { message } from "#schemas/message.ts"

/** The new list, which replaces the previous one. */
export const WatchlistSet = message("WatchlistSet", Struct.omit(SetWatchlist.fields, ["type"]))

export const WatchlistEvent = Schema.Union([WatchlistSet]).pipe(Schema.toTaggedUnion("type"))
export type WatchlistEvent = typeof WatchlistEvent.Type
