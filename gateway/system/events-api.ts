/** `GET /v1/events`: published events over HTTP. Source: DECISIONS "published events". */
import { Option, Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
import { Needs } from "#gateway/access.ts"
import { Streamed } from "#gateway/limits.ts"
import { CloudEvent } from "#schemas/cloud-event.ts"
import { token_chars_max } from "#schemas/message.ts"
import { InstantMs } from "#schemas/system/audit.ts"
import { BackendUnavailable, Forbidden, Invalid } from "#schemas/system/rejection.ts"

/** One token of a subject: it becomes part of a filter of the bus. */
const Filter = Schema.optionalKey(
  Schema.String.check(Schema.isPattern(/^[\w-]+$/), Schema.isMaxLength(token_chars_max)),
)

/** A sequence number as `id:` lines carry it. */
const EventSequence = Schema.String.check(Schema.isPattern(/^\d{1,15}$/))

/** After this sequence, or what was published at this time (RFC 3339) or later. */
const Since = Schema.String.check(
  Schema.makeFilter((text: string) => isSequence(text) || isInstant(text) || expected),
).annotate({ description: "A sequence, or a time as 2026-11-22T08:00:00Z." })
const isSequence = Schema.is(EventSequence)
const isInstant = (text: string) => Option.isSome(decodeInstant(text))
const decodeInstant = Schema.decodeUnknownOption(InstantMs)
const expected = "Expected a sequence, or a time as 2026-11-22T08:00:00Z"

export const Events = HttpApiGroup.make("events")
  .annotate(OpenApi.Description, "Published events.")
  .add(
    HttpApiEndpoint.get("subscribe", "/v1/events", {
      query: {
        service: Filter,
        type: Filter,
        subject: Filter,
        since: Schema.optionalKey(Since),
      },
      headers: { "last-event-id": Schema.optionalKey(EventSequence) },
      success: HttpApiSchema.StreamSse({ data: CloudEvent }),
      error: [Invalid, Forbidden, BackendUnavailable],
    })
      .annotate(OpenApi.Summary, "Subscribe to published events")
      .annotate(Needs, "authenticated")
      .annotate(Streamed, true),
  )
