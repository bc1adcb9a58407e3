/** The published events of all services and of the system. */
import { published as published_blobs } from "#projections/blob-storage/published.ts"
import { published as published_capital } from "#projections/capital-pressure/published.ts"
import { published as published_searches } from "#projections/carrier-search/published.ts"
import { published as published_predictions } from "#projections/plant-disease/published.ts"
import type { Publishing } from "#projections/published/numbering.ts"
import type { Publication } from "#projections/published-events.ts"
import { published as published_shares } from "#projections/share-protection/published.ts"
import { published as published_system } from "#projections/system/published.ts"
import { published as blobs } from "#schemas/blob-storage/published.ts"
import { published as capital } from "#schemas/capital-pressure/published.ts"
import { published as searches } from "#schemas/carrier-search/published.ts"
import { published as predictions } from "#schemas/plant-disease/published.ts"
import type { PublishedTypes } from "#schemas/published.ts"
import { published as shares } from "#schemas/share-protection/published.ts"
import { published as system } from "#schemas/system/published.ts"

/** The published event types, by service. */
export const published_types: ReadonlyArray<readonly [string, PublishedTypes]> = [
  ["blob-storage", blobs] as const,
  ["capital-pressure", capital] as const,
  ["carrier-search", searches] as const,
  ["plant-disease", predictions] as const,
  ["share-protection", shares] as const,
  ["system", system] as const,
]

const publications: ReadonlyArray<Publication> = [
  ...published_blobs,
  ...published_shares,
  ...published_capital,
  ...published_searches,
  ...published_predictions,
  ...published_system,
]

/** Types that older releases, which did not number published events, did not publish. */
const newer = ["system.token_issued", "system.token_revoked"]

const types = published_types.flatMap(([service, published]) =>
  Object.keys(published).map((type) => `${service}.${type}`),
)

export const publishing: Publishing = {
  publications,
  types,
  types_before: types.filter((type) => !newer.includes(type)),
}
