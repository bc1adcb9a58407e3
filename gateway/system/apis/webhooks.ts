/**
 * Webhooks over HTTP: members of a project manage its webhooks, operators manage all of them.
 *
 * Source: issue 10 §3; decision 0131.
 */
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
import { Needs } from "#gateway/access.ts"
import { KeyNotNeeded } from "#gateway/limits.ts"
import {
  BackendUnavailable,
  Conflict,
  Forbidden,
  Invalid,
  NotFound,
  QuotaExceeded,
} from "#schemas/system/rejection.ts"
import {
  CreatedWebhook,
  DeadLetterPage,
  letter_page_query,
  NewReplay,
  NewSecret,
  NewWebhook,
  Ping,
  Redelivery,
  WebhookDetail,
  WebhookPage,
  WebhookPatch,
  webhook_page_query,
} from "#schemas/system/webhook-view.ts"

const id = { id: Schema.String }
const always = [Invalid, Forbidden, BackendUnavailable] as const
const known = [...always, NotFound] as const
const accepted = HttpApiSchema.status(202)

/** The operations on one webhook's deliveries. */
const deliveriesAt = (path: `/${string}`) =>
  [
    HttpApiEndpoint.post("test", `${path}/:id/test`, {
      params: id,
      success: Ping,
      error: known,
    })
      .annotate(KeyNotNeeded, "Each request sends one ping, which means nothing.")
      .annotate(OpenApi.Summary, "Send a ping to a webhook"),
    HttpApiEndpoint.post("replay", `${path}/:id/replay`, {
      params: id,
      payload: NewReplay,
      success: WebhookDetail.pipe(accepted),
      error: [...known, Conflict],
    }).annotate(OpenApi.Summary, "Send events again from a position"),
    HttpApiEndpoint.get("letters", `${path}/:id/dead-letters`, {
      params: id,
      query: letter_page_query,
      success: DeadLetterPage,
      error: known,
    }).annotate(OpenApi.Summary, "List the events that were given up"),
    HttpApiEndpoint.post("redeliver_all", `${path}/:id/dead-letters/redeliver`, {
      params: id,
      success: Redelivery.pipe(accepted),
      error: [...known, Conflict],
    }).annotate(OpenApi.Summary, "Try the oldest dead letters again"),
    HttpApiEndpoint.post("redeliver", `${path}/:id/dead-letters/:sequence/redeliver`, {
      params: { ...id, sequence: Schema.String },
      success: Redelivery.pipe(accepted),
      error: [...known, Conflict],
    }).annotate(OpenApi.Summary, "Try a dead letter again"),
  ] as const

/** Both groups have the same operations. */
const webhooksAt = <const Name extends string>(name: Name, path: `/${string}`) =>
  HttpApiGroup.make(name)
    .annotate(OpenApi.Description, "Webhooks: published events sent to an address of yours.")
    .add(
      HttpApiEndpoint.get("list", path, {
        query: webhook_page_query,
        success: WebhookPage,
        error: always,
      }).annotate(OpenApi.Summary, "List the webhooks"),
      HttpApiEndpoint.post("create", path, {
        payload: NewWebhook,
        success: CreatedWebhook.pipe(HttpApiSchema.status(201)),
        error: [...always, Conflict, QuotaExceeded],
      }).annotate(OpenApi.Summary, "Make a webhook"),
      HttpApiEndpoint.get("get", `${path}/:id`, {
        params: id,
        success: WebhookDetail,
        error: known,
      }).annotate(OpenApi.Summary, "Read a webhook"),
      HttpApiEndpoint.patch("update", `${path}/:id`, {
        params: id,
        payload: WebhookPatch,
        success: WebhookDetail,
        error: [...known, Conflict],
      }).annotate(OpenApi.Summary, "Change a webhook, pause it or enable it"),
      HttpApiEndpoint.delete("delete", `${path}/:id`, { params: id, error: known }).annotate(
        OpenApi.Summary,
        "Delete a webhook",
      ),
      HttpApiEndpoint.post("rotate", `${path}/:id/secret`, {
        params: id,
        payload: NewSecret,
        success: CreatedWebhook,
        error: [...known, Conflict],
      }).annotate(OpenApi.Summary, "Give a webhook a new secret"),
      ...deliveriesAt(path),
    )

export const WebhooksGroup = webhooksAt("webhooks", "/v1/webhooks").annotateEndpoints(Needs, {
  roles: ["member", "admin"],
})

/** The same operations at a path for operators only. Source: DECISIONS, published events. */
export const AdminWebhooksGroup = webhooksAt(
  "admin-webhooks",
  "/v1/admin/webhooks",
).annotateEndpoints(Needs, { roles: ["admin"] })
