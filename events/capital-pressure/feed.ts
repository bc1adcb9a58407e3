/** Results of a feed. Stream: capital-pressure.feed.<metric_id, prices or watchlist>. */
import { Schema, Struct } from "effect"
import { RecordFeedFailure, RecordIngest } from "#schemas/capital-pressure/feed.ts"
import { message } from "#schemas/message.ts"

export const FeedIngested = message("FeedIngested", Struct.omit(RecordIngest.fields, ["type"]))
/** No stored data changed. */
export const FeedFailed = message("FeedFailed", Struct.omit(RecordFeedFailure.fields, ["type"]))

export const FeedEvent = Schema.Union([FeedIngested, FeedFailed]).pipe(Schema.toTaggedUnion("type"))
export type FeedEvent = typeof FeedEvent.Type
