/** The source of each metric and the state of its feed. Source: document 3 §2 A SourcesOut. */
import type { Sources } from "#schemas/capital-pressure/dashboard.ts"
import { dateOf } from "#schemas/capital-pressure/day.ts"
import type { Metric } from "#schemas/capital-pressure/metric.ts"
import { metrics } from "#schemas/capital-pressure/registry.ts"
import { zoneless } from "./formatting.ts"
import type { Store } from "./store.ts"

/** Decisions of document 3: the only source whose certificate is not verified. */
const unverified_note =
  "The publisher's certificate is not verified unless capital.cftc_tls_verify is set; its rows " +
  "are checked."

/** A note for users: why there is no source, or why it is less reliable. */
const noteOf = ({ stub, source_kind }: Metric): string | null =>
  stub ?? (source_kind === "cftc" ? unverified_note : null)

/** All 24 metrics in the registry's order, including stubs. */
export const sourcesOf = ({ observations, feeds }: Store): Sources => ({
  rows: metrics.map((metric) => {
    const { metric_id, name, tier, source, source_kind, stub } = metric
    const days = stub === null ? observations.get(metric_id)?.days : undefined
    const feed = feeds.get(metric_id)
    const newest = days?.at(-1)
    return {
      metric_id,
      name,
      tier,
      source,
      source_kind,
      cadence: metric.cadence_label,
      status: stub === null ? "live" : "stub",
      last_observation: newest === undefined ? null : dateOf(newest),
      last_ingested_at: zoneless(feed?.last_ingested_at ?? null),
      obs_count: days?.length ?? 0,
      last_error: feed?.last_error ?? null,
      note: noteOf(metric),
      demo: feed?.demo ?? false,
    }
  }),
})
