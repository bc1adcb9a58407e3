/** What the events of some aggregates say of themselves in the audit. */
import { Volume } from "#actors/blob-storage/volume.ts"
import { Search } from "#actors/carrier-search/search.ts"
import { Prediction } from "#actors/plant-disease/prediction.ts"
import { happenedAt, VolumeEvent } from "#events/blob-storage/volume.ts"
import { SearchEvent } from "#events/carrier-search/search.ts"
import { PredictionEvent } from "#events/plant-disease/prediction.ts"
import { type Detail, detail, type Known } from "#projections/system/audit.ts"
import { subjectOf } from "#schemas/carrier-search/search.ts"

/** Who did what was recorded later, and when; a request that had no id has none here. */
const origin = (
  told: Required<Pick<Known, "actor" | "request_id" | "correlation_id">>,
  at: string,
): Known => ({
  at,
  actor: told.actor,
  ...(told.request_id === "" ? {} : { request_id: told.request_id }),
  ...(told.correlation_id === "" ? {} : { correlation_id: told.correlation_id }),
})

/**
 * A node's journal tells later what others did to its blobs: who, when, and to which. Of a
 * shortfall its commit knows all.
 */
const volume = detail({
  part: Volume.name,
  event: VolumeEvent,
  know: (event) => {
    if (!("cursor" in event)) return {}
    return { ...origin(event, happenedAt(event)), subject: event.id }
  },
})

/** A node's spool tells later who searched which range. */
const search = detail({
  part: Search.name,
  event: SearchEvent,
  know: (event) => ({ ...origin(event, event.at), subject: subjectOf(event) }),
})

/** A node's spool tells later who was told what of which image. */
const prediction = detail({
  part: Prediction.name,
  event: PredictionEvent,
  know: (event) => ({ ...origin(event, event.at), subject: event.image_sha256 }),
})

/** What events tell of themselves beyond their commits; the audit's read model is made with it. */
export const details: ReadonlyArray<Detail> = [volume, search, prediction]
