/** The metrics of this process for `/metrics`, collected from its parts. */
import { Context, Effect } from "effect"
import { WebhookCursors } from "#actors/system/webhooks/cursors.ts"
import { placeMetrics } from "#adapters/place-metrics.ts"
import { processMetrics } from "#adapters/process-metrics.ts"
import { Log } from "#events/log.ts"
import { EventStreams } from "#gateway/budget.ts"
import { publisherMetrics, subscriberMetrics } from "#gateway/health/published-metrics.ts"
import type { RequestMetrics } from "#gateway/metrics.ts"
import type { Mounted } from "#gateway/routes.ts"
import {
  type Collector,
  collectMetrics,
  readModelMetrics,
  webhookMetrics,
} from "#gateway/system/metrics.ts"
import { ReadModels } from "#gateway/system/read-models.ts"
import { Subscribers } from "#projections/health/subscribers.ts"
import { PublishedEvents } from "#projections/published-events.ts"
import { WebhookModel } from "#projections/system/webhook-model.ts"
import { familyText } from "#schemas/metric.ts"
import type { Settings } from "#schemas/settings.ts"
import { version } from "#server/program.ts"

/** Metrics of the components that all services share, as far as this process has them. */
export const sharedCollectors = Effect.gen(function* () {
  const around = yield* Effect.context<
    Log | PublishedEvents | ReadModels | Subscribers | WebhookCursors | WebhookModel
  >()
  const known = around.pipe(
    Context.pick(Log, PublishedEvents, ReadModels, Subscribers, WebhookCursors, WebhookModel),
    Context.add(EventStreams, yield* EventStreams),
  )
  const collectors: ReadonlyArray<Collector> = [
    { name: "read-models", text: Effect.provideContext(readModelMetrics, known) },
    { name: "webhooks", text: Effect.provideContext(webhookMetrics, known) },
    { name: "subscribers", text: Effect.provideContext(subscriberMetrics, known) },
  ]
  return collectors
})

const serviceUp = (services: ReadonlyArray<Mounted>) =>
  familyText(
    { name: "almanac_service_up", type: "gauge", help: "1 if the service started, otherwise 0." },
    services.map(({ name, app }) => [app === undefined ? 0 : 1, { service: name }]),
  )

export interface MetricsSources {
  readonly settings: Settings
  readonly requests: RequestMetrics
  readonly services: ReadonlyArray<Mounted>
  readonly collectors: ReadonlyArray<Collector>
  /** Expiry of the TLS certificate, in Unix time; undefined without TLS. */
  readonly certificateEnds: () => number | undefined
}

/** The text of all metrics; the event loop is monitored until the scope closes. */
export const allMetrics = Effect.fnUntraced(function* (measured: MetricsSources) {
  const { settings, requests, services, collectors, certificateEnds } = measured
  const process_text = yield* processMetrics
  const log = yield* Log
  return collectMetrics([
    { name: "requests", text: Effect.sync(() => requests.text() + serviceUp(services)) },
    ...collectors,
    // Any process may publish, including one without an API.
    { name: "publisher", text: Effect.provideService(publisherMetrics, Log, log) },
    { name: "process", text: process_text },
    { name: "place", text: placeMetrics(settings, version, certificateEnds) },
  ])
})
