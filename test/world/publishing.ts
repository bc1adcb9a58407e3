/** The published types of tests, without anchors. */
import { Layer } from "effect"
import { publishedEventsMemory } from "#adapters/published/memory.ts"
import { logMemory } from "#journal"
import { PublishedHistory } from "#projections/published/history.ts"
import type { Publication } from "#projections/published-events.ts"

export const publishingOf = (publications: ReadonlyArray<Publication>) => ({
  publications,
  types: [],
  types_before: [],
})

/** The history over published events of an empty log. */
export const historyAlone = PublishedHistory.layer(publishingOf([])).pipe(
  Layer.provide(Layer.fresh(logMemory)),
)

/** Published events in memory for an empty log, with their history. */
export const eventsMemory = Layer.provideMerge(historyAlone, publishedEventsMemory)
