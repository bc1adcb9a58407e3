/** Audit details of events that record earlier actions. */
import { Volume } from "#actors/blob-storage/volume.ts"
import { Search } from "#actors/carrier-search/search.ts"
import { Prediction } from "#actors/plant-disease/prediction.ts"
import { happenedAt, VolumeEvent } from "#events/blob-storage/volume.ts"
import { SearchEvent } from "#events/carrier-search/search.ts"
import { PredictionEvent } from "#events/plant-disease/prediction.ts"
import { type Detail, detail, type Known } from "#projections/system/audit.ts"
import { subjectOf } from "#schemas/carrier-search/search.ts"

/** The actor, time and ids of an action that was recorded later; empty ids are omitted. */
const origin = (
  recorded: Required<Pick<Known, "actor" | "request_id" | "correlation_id">>,
  at: string,
): Known => ({
  at,
  actor: recorded.actor,
  ...(recorded.request_id === "" ? {} : { request_id: recorded.request_id }),
  ...(recorded.correlation_id === "" ? {} : { correlation_id: recorded.correlation_id }),
})

/**
 * A node's journal records blob operations later, with actor, time and blob. A shortfall needs no
 * details beyond its commit.
 */
const volume = detail({
  part: Volume.name,
  event: VolumeEvent,
  know: (event) => {
    if (!("cursor" in event)) return {}
    return { ...origin(event, happenedAt(event)), subject: event.id }
  },
})

/** A node's spool records searches later. */
const search = detail({
  part: Search.name,
  event: SearchEvent,
  know: (event) => ({ ...origin(event, event.at), subject: subjectOf(event) }),
})

/** A node's spool records predictions later. */
const prediction = detail({
  part: Prediction.name,
  event: PredictionEvent,
  know: (event) => ({ ...origin(event, event.at), subject: event.image_sha256 }),
})

/** Details of events beyond their commits, for the audit's read model. */
export const details: ReadonlyArray<Detail> = [volume, search, prediction]
