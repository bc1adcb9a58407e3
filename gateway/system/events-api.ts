/** `GET /v1/events`: published events over HTTP. Source: DECISIONS "published events". */
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
import { Needs } from "#gateway/access.ts"
import { Streamed } from "#gateway/limits.ts"
import { CloudEvent } from "#schemas/cloud-event.ts"
import { token_chars_max } from "#schemas/message.ts"
import { BackendUnavailable, Forbidden, Invalid } from "#schemas/system/rejection.ts"

/** One token of a subject: it becomes part of a filter of the bus. */
const Filter = Schema.optionalKey(
  Schema.String.check(Schema.isPattern(/^[\w-]+$/), Schema.isMaxLength(token_chars_max)),
)

/** A sequence number as `id:` lines carry it. */
const EventSequence = Schema.String.check(Schema.isPattern(/^\d{1,15}$/))

export const Events = HttpApiGroup.make("events")
  .annotate(OpenApi.Description, "Published events.")
  .add(
    HttpApiEndpoint.get("subscribe", "/v1/events", {
      query: { service: Filter, type: Filter, subject: Filter },
      headers: { "last-event-id": Schema.optionalKey(EventSequence) },
      success: HttpApiSchema.StreamSse({ data: CloudEvent }),
      error: [Invalid, Forbidden, BackendUnavailable],
    })
      .annotate(OpenApi.Summary, "Subscribe to published events")
      .annotate(Needs, "authenticated")
      .annotate(Streamed, true),
  )
