/**
 * Webhooks over HTTP: a member of a project makes those of the project, an operator any.
 *
 * Source: issue 10 §3; decision 0131.
 */
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
import { Needs } from "#gateway/access.ts"
import {
  BackendUnavailable,
  Conflict,
  Forbidden,
  Invalid,
  NotFound,
  QuotaExceeded,
} from "#schemas/system/rejection.ts"
import {
  DeadLetterPage,
  letter_page_query,
  NewReplay,
  NewSecret,
  NewWebhook,
  Ping,
  Redelivery,
  WebhookDetail,
  WebhookMade,
  WebhookPage,
  WebhookPatch,
  webhook_page_query,
} from "#schemas/system/webhook-view.ts"

const id = { id: Schema.String }
const always = [Invalid, Forbidden, BackendUnavailable] as const
const known = [...always, NotFound] as const
const accepted = HttpApiSchema.status(202)

/** What is of one webhook's deliveries. */
const deliveries = [
  HttpApiEndpoint.post("test", "/v1/webhooks/:id/test", {
    params: id,
    success: Ping,
    error: known,
  }).annotate(OpenApi.Summary, "Send a ping to a webhook"),
  HttpApiEndpoint.post("replay", "/v1/webhooks/:id/replay", {
    params: id,
    payload: NewReplay,
    success: WebhookDetail.pipe(accepted),
    error: [...known, Conflict],
  }).annotate(OpenApi.Summary, "Send events again from a position"),
  HttpApiEndpoint.get("letters", "/v1/webhooks/:id/dead-letters", {
    params: id,
    query: letter_page_query,
    success: DeadLetterPage,
    error: known,
  }).annotate(OpenApi.Summary, "List the events that were given up"),
  HttpApiEndpoint.post("redeliver_all", "/v1/webhooks/:id/dead-letters/redeliver", {
    params: id,
    success: Redelivery.pipe(accepted),
    error: [...known, Conflict],
  }).annotate(OpenApi.Summary, "Try the oldest dead letters again"),
  HttpApiEndpoint.post("redeliver", "/v1/webhooks/:id/dead-letters/:sequence/redeliver", {
    params: { ...id, sequence: Schema.String },
    success: Redelivery.pipe(accepted),
    error: [...known, Conflict],
  }).annotate(OpenApi.Summary, "Try a dead letter again"),
] as const

export const WebhooksGroup = HttpApiGroup.make("webhooks")
  .annotate(OpenApi.Description, "Webhooks: published events sent to an address of yours.")
  .add(
    HttpApiEndpoint.get("list", "/v1/webhooks", {
      query: webhook_page_query,
      success: WebhookPage,
      error: always,
    }).annotate(OpenApi.Summary, "List the webhooks"),
    HttpApiEndpoint.post("create", "/v1/webhooks", {
      payload: NewWebhook,
      success: WebhookMade.pipe(HttpApiSchema.status(201)),
      error: [...always, Conflict, QuotaExceeded],
    }).annotate(OpenApi.Summary, "Make a webhook"),
    HttpApiEndpoint.get("get", "/v1/webhooks/:id", {
      params: id,
      success: WebhookDetail,
      error: known,
    }).annotate(OpenApi.Summary, "Read a webhook"),
    HttpApiEndpoint.patch("update", "/v1/webhooks/:id", {
      params: id,
      payload: WebhookPatch,
      success: WebhookDetail,
      error: [...known, Conflict],
    }).annotate(OpenApi.Summary, "Change a webhook, pause it or enable it"),
    HttpApiEndpoint.delete("delete", "/v1/webhooks/:id", { params: id, error: known }).annotate(
      OpenApi.Summary,
      "Delete a webhook",
    ),
    HttpApiEndpoint.post("rotate", "/v1/webhooks/:id/secret", {
      params: id,
      payload: NewSecret,
      success: WebhookMade,
      error: [...known, Conflict],
    }).annotate(OpenApi.Summary, "Give a webhook a new secret"),
    ...deliveries,
  )
  .annotateEndpoints(Needs, { roles: ["member", "admin"] })
