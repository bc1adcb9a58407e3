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

/** The format of a webhook's id; other texts match no webhook. */
const uuid = { type: "string", format: "uuid" }

const id = { id: Schema.String.annotate({ description: "ID of the webhook.", documentedAs: uuid }) }
const sequence = Schema.String.annotate({
  description: "The number of the event.",
  documentedAs: { type: "integer", minimum: 0 },
})

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
      .annotate(KeyNotNeeded, "Each request sends another ping, which has no other effect.")
      .annotate(OpenApi.Summary, "Send a ping to a webhook")
      .annotate(
        OpenApi.Description,
        "Sends a signed event of the type `webhook_pinged` to the URL at once, also if the " +
          "webhook is paused or disabled, and returns the result. It is not retried.",
      ),
    HttpApiEndpoint.post("replay", `${path}/:id/replay`, {
      params: id,
      payload: NewReplay,
      success: WebhookDetail.pipe(accepted),
      error: [...known, Conflict],
    })
      .annotate(OpenApi.Summary, "Replay events")
      .annotate(
        OpenApi.Description,
        "Sends every selected event after this one again, in order. Receivers recognize " +
          "duplicates by the id of the event.",
      ),
    HttpApiEndpoint.get("letters", `${path}/:id/dead-letters`, {
      params: id,
      query: letter_page_query,
      success: DeadLetterPage,
      error: known,
    })
      .annotate(OpenApi.Summary, "List the dead letters")
      .annotate(
        OpenApi.Description,
        "Lists the events that could not be delivered, ordered by number.",
      ),
    HttpApiEndpoint.post("redeliver_all", `${path}/:id/dead-letters/redeliver`, {
      params: id,
      success: Redelivery.pipe(accepted),
      error: [...known, Conflict],
    })
      .annotate(OpenApi.Summary, "Redeliver the oldest dead letters")
      .annotate(
        OpenApi.Description,
        "Delivers the oldest dead letters again, as many as may be pending at once. The " +
          "webhook must be active. A letter that is delivered leaves the list.",
      ),
    HttpApiEndpoint.post("redeliver", `${path}/:id/dead-letters/:sequence/redeliver`, {
      params: { ...id, sequence },
      success: Redelivery.pipe(accepted),
      error: [...known, Conflict],
    })
      .annotate(OpenApi.Summary, "Redeliver a dead letter")
      .annotate(
        OpenApi.Description,
        "Delivers this dead letter again. The webhook must be active. A letter that is " +
          "delivered leaves the list.",
      ),
  ] as const

/** The operations that change one webhook. */
const changesAt = (path: `/${string}`) =>
  [
    HttpApiEndpoint.patch("update", `${path}/:id`, {
      params: id,
      payload: WebhookPatch,
      success: WebhookDetail,
      error: [...known, Conflict],
    })
      .annotate(OpenApi.Summary, "Change a webhook")
      .annotate(
        OpenApi.Description,
        "Changes the fields in the request; others stay as they are. `enabled: false` " +
          "pauses the webhook. `enabled: true` also enables a disabled one, which continues " +
          "where it stopped.",
      ),
    HttpApiEndpoint.delete("delete", `${path}/:id`, { params: id, error: known })
      .annotate(OpenApi.Summary, "Delete a webhook")
      .annotate(
        OpenApi.Description,
        "Deletes the webhook and its dead letters. Deliveries stop at once. The response " +
          "has no body.",
      ),
    HttpApiEndpoint.post("rotate", `${path}/:id/secret`, {
      params: id,
      payload: NewSecret,
      success: CreatedWebhook,
      error: [...known, Conflict],
    })
      .annotate(OpenApi.Summary, "Rotate the secret of a webhook")
      .annotate(
        OpenApi.Description,
        "Creates a new secret, and returns it. Until `overlap_hours` have passed, " +
          "deliveries are signed with the previous secret too. Only this response contains " +
          "the new secret.",
      ),
  ] as const

/** Both groups have the same operations. */
const webhooksAt = <const Name extends string>(name: Name, path: `/${string}`) =>
  HttpApiGroup.make(name)
    .annotate(
      OpenApi.Description,
      "Webhooks: published events that the server sends to your URL, signed and retried.",
    )
    .add(
      HttpApiEndpoint.get("list", path, {
        query: webhook_page_query,
        success: WebhookPage,
        error: always,
      })
        .annotate(OpenApi.Summary, "List webhooks")
        .annotate(
          OpenApi.Description,
          "Lists the webhooks of the project of the token, or those of all projects for an " +
            "admin, oldest first.",
        ),
      HttpApiEndpoint.post("create", path, {
        payload: NewWebhook,
        success: CreatedWebhook.pipe(HttpApiSchema.status(201)),
        error: [...always, Conflict, QuotaExceeded],
      })
        .annotate(OpenApi.Summary, "Create a webhook")
        .annotate(
          OpenApi.Description,
          "Creates a webhook, and returns it with its secret. Only this response contains the " +
            "secret, which signs each delivery (HMAC-SHA-256). The server delivers events in " +
            "order and retries failed ones with backoff. An event that cannot be delivered " +
            "becomes a dead letter; a webhook whose deliveries fail for too long, or whose " +
            "receiver responds with 410, is disabled.",
        ),
      HttpApiEndpoint.get("get", `${path}/:id`, {
        params: id,
        success: WebhookDetail,
        error: known,
      })
        .annotate(OpenApi.Summary, "Get a webhook")
        .annotate(OpenApi.Description, "Returns the webhook with the progress of its deliveries."),
      ...changesAt(path),
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
