/** The dashboard's reader thread: reloads a changed file and builds responses. */
import { createHash } from "node:crypto"
import { workerData } from "node:worker_threads"
import { gzipSync } from "node:zlib"
import { watchedFile } from "#adapters/capital-pressure/reader-file.ts"
import { readStore } from "#adapters/capital-pressure/store.ts"
import type { DashboardQuery, EncodedPage } from "#gateway/capital-pressure/dashboard-reader.ts"
import { dashboardOf } from "#projections/capital-pressure/dashboard.ts"
import { detailOf, historyOf } from "#projections/capital-pressure/detail.ts"
import { schedulerOf } from "#projections/capital-pressure/schedule.ts"
import { sourcesOf } from "#projections/capital-pressure/source.ts"
import type { Store } from "#projections/capital-pressure/store.ts"
import { tierHistoryOf } from "#projections/capital-pressure/tier.ts"
import { watchlistOf } from "#projections/capital-pressure/watchlist.ts"
import { dayOf } from "#schemas/capital-pressure/day.ts"
import { findMetric } from "#schemas/capital-pressure/registry.ts"
import type { JobId } from "#schemas/capital-pressure/schedule.ts"
import { serveCalls } from "#threads"

/** The next run of each job, in RFC 3339; a missing job does not run. */
export type NextRuns = Readonly<Partial<Record<JobId, string>>>

export interface PageRequest {
  readonly query: DashboardQuery
  /** Days since 1970-01-01. */
  readonly today: number
  readonly next_runs: NextRuns
}

/** For less, gzip saves less than a packet. */
const gzip_bytes_min = 1400
/** Characters of the ETag: 132 bits of a SHA-256. */
const tag_digits = 22

const metricOf = (metric_id: string) => {
  const metric = findMetric(metric_id)
  if (metric === undefined) throw new Error(`The metric ${metric_id} does not exist.`)
  return metric
}

const sinceOf = (date: string | null) => (date === null ? undefined : dayOf(date))

const pageOf = (store: Store, { query, today, next_runs }: PageRequest): unknown => {
  switch (query.kind) {
    case "dashboard":
      return dashboardOf(store, today)
    case "history":
      return historyOf(store, metricOf(query.metric_id), sinceOf(query.since))
    case "detail":
      return detailOf(store, metricOf(query.metric_id), today)
    case "tier":
      return tierHistoryOf(store, query.tier)
    case "sources":
      return sourcesOf(store)
    case "scheduler":
      return schedulerOf(store, ({ id }) => next_runs[id] ?? null)
    case "watchlist":
      return watchlistOf(store)
  }
}

const encodePage = (page: unknown): EncodedPage => {
  const bytes = new TextEncoder().encode(JSON.stringify(page))
  const tag = createHash("sha256").update(bytes).digest("base64url").slice(0, tag_digits)
  // Copied, because zlib's result may be part of a larger buffer, which cannot be transferred.
  const gzip = bytes.length < gzip_bytes_min ? null : Uint8Array.from(gzipSync(bytes))
  return { bytes, gzip, tag }
}

const responder = (path: string) => {
  const watched = watchedFile(path)
  let store: Store | undefined
  let loaded_change = 0
  return (request: PageRequest): EncodedPage => {
    try {
      const change = watched.changeCount()
      if (store === undefined || change !== loaded_change)
        store = readStore(watched.file(), "latest")
      loaded_change = change
      return encodePage(pageOf(store, request))
    } catch (error) {
      store = undefined
      throw error
    }
  }
}

// `reader.ts` starts this thread with the file's path.
serveCalls(responder(workerData as string), ({ bytes, gzip }) => {
  const buffers = gzip === null ? [bytes.buffer] : [bytes.buffer, gzip.buffer]
  // Each owns its ArrayBuffer.
  return buffers as Array<ArrayBuffer>
})
