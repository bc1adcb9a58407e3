/** The API that belongs to no service: events, audit, read models, tokens, webhooks. */
import { Context, Effect, Layer } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { Log } from "#events/log.ts"
import { EventStreams, streamBudget } from "#gateway/budget.ts"
import { SecretKeeper, TokenIssuer, TrustIssuer } from "#gateway/identity.ts"
import { appOf } from "#gateway/routes.ts"
import { OperationsApi } from "#gateway/system/apis/operations.ts"
import { Charts, operations } from "#gateway/system/operations.ts"
import { PublishedNames } from "#gateway/system/published-names.ts"
import { quarantineMetrics, quarantineNote } from "#gateway/system/quarantine.ts"
import { type Operated, ReadModels } from "#gateway/system/read-models.ts"
import { EventTickets } from "#gateway/ticket/tickets.ts"
import { BlobStorageModel, blueprint } from "#projections/blob-storage/blueprint.ts"
import {
  type CapitalPressureModel,
  blueprint as capital_blueprint,
} from "#projections/capital-pressure/blueprint.ts"
import { Subscribers } from "#projections/health/subscribers.ts"
import { PublishedHistory } from "#projections/published/history.ts"
import { PublishedEvents } from "#projections/published-events.ts"
import {
  ShareProtectionModel,
  blueprint as share_blueprint,
} from "#projections/share-protection/blueprint.ts"
import { SystemModel } from "#projections/system/blueprint.ts"
import { WebhookModel, blueprint as webhook_blueprint } from "#projections/system/webhook-model.ts"
import { waitForPart } from "#projections/wait-for-part.ts"
import type { Settings } from "#schemas/settings.ts"
import { charts } from "#server/charts.ts"
import { sharedCollectors } from "#server/metrics.ts"
import { firstOf, modelProblem, publisherProblem } from "#server/problems.ts"
import { published_types } from "#server/published.ts"
import type { RoleParts } from "#server/roles/parts.ts"
import { witnessing } from "#server/session.ts"
import { webhookPorts } from "#server/webhooks.ts"

/** The read models of this process, by name. */
const readModelsByName = Effect.fnUntraced(function* (
  { roles }: Settings,
  { blobs, models }: RoleParts,
  capital: CapitalPressureModel["Service"] | undefined,
) {
  const of_blobs = roles.includes("blob") ? Context.get(yield* blobs, BlobStorageModel) : undefined
  const known = yield* models
  const system = Context.get(known, SystemModel)
  const all: ReadonlyArray<readonly [string, Operated | undefined]> = [
    ["blob-storage", of_blobs && { ...of_blobs, part: blueprint.part }],
    [
      "share-protection",
      { ...Context.get(known, ShareProtectionModel), part: share_blueprint.part },
    ],
    ["capital-pressure", capital && { ...capital, part: capital_blueprint.part }],
    ["system", system.is_maintained === false ? undefined : { ...system, part: "" }],
    ["system-webhook", { ...Context.get(known, WebhookModel), part: webhook_blueprint.part }],
  ]
  return new Map(all.flatMap(([name, model]) => (model === undefined ? [] : [[name, model]])))
})

/**
 * The API to mount, and its metrics. `capital` is undefined if the dashboard's read model is not
 * available.
 */
export const operationsService = Effect.fnUntraced(function* (
  settings: Settings,
  parts: RoleParts,
  capital: CapitalPressureModel["Service"] | undefined,
) {
  const models = yield* parts.models
  const system = Context.get(models, SystemModel)
  const read_models = yield* Layer.build(
    ReadModels.layer(yield* readModelsByName(settings, parts, capital)),
  )
  const context = yield* Effect.context<
    | Log
    | PublishedEvents
    | PublishedHistory
    | SecretKeeper
    | Subscribers
    | TokenIssuer
    | TrustIssuer
  >()
  const known = context.pipe(
    Context.pick(
      Log,
      PublishedEvents,
      PublishedHistory,
      SecretKeeper,
      Subscribers,
      TokenIssuer,
      TrustIssuer,
    ),
    Context.add(SystemModel, system),
    Context.add(PublishedNames, published_types),
    Context.add(EventStreams, streamBudget(settings.api)),
    Context.add(EventTickets, yield* EventTickets),
  )
  const with_webhooks = Context.merge(models, yield* parts.hooks)
  const webhook_ports = yield* Effect.provideContext(webhookPorts(settings), with_webhooks)
  const witness_services = yield* Layer.build(witnessing(settings))
  const shared = yield* Effect.provideContext(
    sharedCollectors,
    Context.mergeAll(known, read_models, with_webhooks),
  )
  const collectors = [...shared, { name: "quarantine", text: quarantineMetrics(system) }]
  const layer = HttpApiBuilder.layer(OperationsApi).pipe(Layer.provide(operations))
  const all = Context.mergeAll(
    known,
    read_models,
    Charts.context(charts),
    webhook_ports,
    witness_services,
  )
  const routes = appOf(layer, all)
  // Webhooks have their own read model, which may be behind the audit's.
  const webhooksWaitFor = waitForPart(
    Context.get(known, Log),
    Context.get(models, WebhookModel),
    webhook_blueprint.part,
  )
  const waitFor = (position: number) =>
    Effect.andThen(system.waitFor(position), webhooksWaitFor(position))
  const webhook = Context.get(models, WebhookModel)
  const ready = firstOf(
    yield* parts.commands,
    yield* modelProblem("audit", "", system),
    yield* modelProblem("webhook", webhook_blueprint.part, webhook),
    yield* publisherProblem,
  )
  const note = quarantineNote(system)
  const service = { name: "operations", api: OperationsApi, routes, waitFor, ready, note }
  return { service, collectors }
})
