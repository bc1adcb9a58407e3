/**
 * Feeds over HTTP: twenty metrics, and the prices.
 *
 * Source: document 3 §1 A; decisions of document 3, metric registry; market facts, A1.4.
 */
import { Clock, Effect, Layer, Redacted } from "effect"
import {
  type FeedFailed,
  Feeds,
  type FetchedValues,
  unchanged,
} from "#actors/capital-pressure/feeds.ts"
import {
  digestOf,
  forgetResponses,
  type KnownResponses,
  keyOf,
  knownResponse,
  loadResponses,
  storeResponses,
} from "#adapters/capital-pressure/feeds/cache.ts"
import { cboePart } from "#adapters/capital-pressure/feeds/cboe.ts"
import { cftcPart } from "#adapters/capital-pressure/feeds/cftc.ts"
import {
  type ClientOptions,
  type Download,
  feedClient,
  type Reply,
} from "#adapters/capital-pressure/feeds/client.ts"
import { derivations, warm_up_days } from "#adapters/capital-pressure/feeds/derived.ts"
import { finraPart } from "#adapters/capital-pressure/feeds/finra.ts"
import { debtPart } from "#adapters/capital-pressure/feeds/fiscaldata.ts"
import { fredPart } from "#adapters/capital-pressure/feeds/fred.ts"
import { ofrPart } from "#adapters/capital-pressure/feeds/ofr.ts"
import {
  advice,
  type FeedPart,
  type FeedPlan,
  feedFailed,
  publishers,
  singlePartPlan,
} from "#adapters/capital-pressure/feeds/plan.ts"
import { type PriceOptions, priceFeed } from "#adapters/capital-pressure/feeds/prices.ts"
import { seriesSince } from "#adapters/capital-pressure/feeds/series.ts"
import type { Series } from "#projections/capital-pressure/store.ts"
import { dayAt } from "#schemas/capital-pressure/day.ts"
import type { Metric } from "#schemas/capital-pressure/metric.ts"

export interface FeedsHttpOptions extends ClientOptions, PriceOptions {
  /** The folder of HTTP validators: `<data>/feeds`. */
  readonly folder: string
  /** If empty, FRED's CSV is used, which needs no key. */
  readonly fred_key: Redacted.Redacted<string>
}

export const feedsHttp = (options: FeedsHttpOptions): Layer.Layer<Feeds> =>
  Layer.effect(
    Feeds,
    Effect.gen(function* () {
      const download = yield* feedClient(options)
      const fred_key = Redacted.value(options.fred_key) === "" ? undefined : options.fred_key
      const fred = (series: string, since?: number) => fredPart(series, since, fred_key)
      return {
        fetch: Effect.fnUntraced(function* (metric, since) {
          const plan = planOf(metric, since, fred)
          if (plan)
            return yield* fetchPlan(plan, { download, folder: options.folder, metric, since })
          return yield* feedFailed(
            metric.name,
            "has no feed",
            metric.stub ?? "Almanac has no fetcher for it.",
          )
        }),
        reset: ({ metric_id }) => forgetResponses(options.folder, metric_id),
        prices: priceFeed(options, { download, fred }),
      }
    }),
  )

type Fred = (series: string, since?: number) => FeedPart

const planOf = (metric: Metric, since: number | undefined, fred: Fred): FeedPlan | undefined => {
  const { metric_id, source_kind, source_series } = metric
  if (source_series === null) return undefined
  switch (source_kind) {
    case "fred":
      return singlePartPlan(fred(source_series, since))
    case "fred_derived": {
      const derivation = derivations.get(metric_id)
      const first = since === undefined ? undefined : since - warm_up_days
      return (
        derivation && {
          parts: derivation.inputs.map((series) => fred(series, first)),
          combine: derivation.combine,
        }
      )
    }
    case "ofr":
      return singlePartPlan(ofrPart)
    case "cftc":
      return singlePartPlan(cftcPart(source_series, since))
    case "cboe":
      return singlePartPlan(cboePart(source_series))
    case "finra":
      return metric_id === "margin_debt" || metric_id === "margin_cushion"
        ? singlePartPlan(finraPart(metric_id))
        : undefined
    case "fiscaldata":
      return singlePartPlan(debtPart(since))
    case "none":
      return undefined
  }
}

interface FetchContext {
  readonly download: Download
  readonly folder: string
  readonly metric: Metric
  readonly since: number | undefined
}

/** Concurrent requests for the inputs of one metric. */
const concurrent_parts_max = 3

const fetchPlan = Effect.fnUntraced(function* (plan: FeedPlan, context: FetchContext) {
  const { folder, metric, since } = context
  const cached = yield* loadResponses(folder, metric.metric_id)
  const found = yield* Effect.forEach(plan.parts, (part) => fetchPart(part, context, cached), {
    concurrency: concurrent_parts_max,
  })
  if (found.every(({ is_same }) => is_same)) return unchanged
  const complete = yield* Effect.forEach(found, (one) =>
    // Another input changed, so this one is downloaded too.
    one.bytes === undefined ? fetchPart(one.part, context, {}) : Effect.succeed(one),
  )
  const today = dayAt(yield* Clock.currentTimeMillis)
  const series = yield* Effect.forEach(complete, (one) => readPart(one, today))
  const requested = seriesSince(plan.combine(series), since)
  if (requested.days.length === 0 && since === undefined) {
    return yield* feedFailed(metric.name, "has no values", advice.form)
  }
  const responses = Object.fromEntries(
    complete.flatMap(({ key, now }) => (now === undefined ? [] : [[key, now] as const])),
  )
  const fetched: FetchedValues = {
    ...requested,
    acknowledge: storeResponses(folder, metric.metric_id, responses),
  }
  return fetched
})

const fetchPart = Effect.fnUntraced(function* (
  part: FeedPart,
  { download, since }: FetchContext,
  before: KnownResponses,
) {
  const key = keyOf(part.request, since)
  const last = before[key]
  const reply: Reply = yield* download(part.request, last)
  if (reply.is_unchanged) return { part, key, is_same: true, bytes: undefined, now: last }
  const sha256 = digestOf(reply.bytes)
  const now = knownResponse(reply.validators, sha256)
  return { part, key, is_same: sha256 === last?.sha256, bytes: reply.bytes, now }
})

const readPart = (
  { part, bytes }: { readonly part: FeedPart; readonly bytes: Uint8Array | undefined },
  today: number,
): Effect.Effect<Series, FeedFailed> =>
  Effect.mapError(part.read(bytes ?? new Uint8Array(0), today), ({ reason }) =>
    feedFailed(publishers[part.request.publisher].name, reason, advice.form),
  )
