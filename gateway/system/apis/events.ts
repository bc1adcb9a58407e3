/** `GET /v1/events`: published events over HTTP. Source: DECISIONS "published events". */
import { Option, Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
import { Needs } from "#gateway/access.ts"
import { KeyNotNeeded, Streamed, Ticketed } from "#gateway/limits.ts"
import { ticket_chars_max } from "#gateway/ticket/tickets.ts"
import { CloudEvent } from "#schemas/cloud-event.ts"
import { token_chars_max } from "#schemas/message.ts"
import { InstantMs } from "#schemas/system/audit.ts"
import { BackendUnavailable, Forbidden, Invalid, TooMany } from "#schemas/system/rejection.ts"

/** One token of a subject, which becomes part of a filter on the bus. */
const Name = Schema.String.check(Schema.isPattern(/^[\w-]+$/u), Schema.isMaxLength(token_chars_max))

/** Maximum number of names in a filter. */
const names_max = 32

/** One name, or several separated by commas. */
const Names = Schema.String.check(
  Schema.makeFilter((text: string) => namesOf(text).length <= names_max || too_many),
  Schema.makeFilter((text: string) => namesOf(text).every(isName) || `${expected_name}`),
)
const isName = Schema.is(Name)
const expected_name = `Expected names of letters, digits, _ and -, separated by commas`
const too_many = `Expected at most ${names_max} names`

/** The names of a filter, whose parameter may also occur several times. */
export const namesOf = (parameter: string | ReadonlyArray<string> = []) =>
  [parameter].flat().flatMap((text) => text.split(","))

/** A filter by names; `what` names what is selected. */
const filterOf = (what: string) =>
  Schema.optionalKey(
    Schema.Union([Names, Schema.Array(Names).check(Schema.isMaxLength(names_max))]).annotate({
      description:
        `Only events of ${what}: up to ${names_max} names, separated by commas or in several ` +
        "parameters. An unknown name fails with 400.",
      documentedAs: { type: "string", pattern: "^[A-Za-z0-9_-]+(,[A-Za-z0-9_-]+){0,31}$" },
    }),
  )

/** `<epoch>-<sequence>`, as in `id:` lines, or only a sequence of the current epoch. */
const EventId = Schema.String.check(Schema.isPattern(/^([0-9a-f]{8}-)?\d{1,15}$/u))

/** The parts of an id. */
export const placeOf = (id: string) => {
  const [, epoch, sequence] = /^(?:(\w+)-)?(\d+)$/.exec(id) ?? []
  return { epoch, sequence: Number(sequence) }
}

/**
 * Selects events after the one with this id, or those published at this time (RFC 3339) or later.
 */
const Since = Schema.String.check(
  Schema.makeFilter((text: string) => isEventId(text) || isInstant(text) || expected),
).annotate({
  description:
    "Start after the event with this id, or with the first event at this time (RFC 3339) or " +
    "later. `0` starts with the oldest event.",
  documentedAs: {
    type: "string",
    pattern: "^(([0-9a-f]{8}-)?[0-9]{1,15}|[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:]{8}Z)$",
  },
})
export const isEventId = Schema.is(EventId)
const isInstant = (text: string) => Option.isSome(decodeInstant(text))
const decodeInstant = Schema.decodeUnknownOption(InstantMs)
const expected = "Expected the id of an event, or a time such as 2026-11-22T08:00:00Z"

/** Limits the length; the door validates the ticket. */
const TicketText = Schema.String.check(Schema.isMaxLength(ticket_chars_max)).annotate({
  description: "A ticket of `POST /v1/events/tickets`, instead of a token.",
})

const Ticket = Schema.Struct({
  ticket: Schema.String.annotate({
    description: "The value for the query parameter `ticket` of `GET /v1/events`.",
  }),
  expires_at: Schema.String.annotate({
    description: "Time at which it expires unless a stream is open with it, RFC 3339 in UTC.",
  }),
})

const stream_fields: Readonly<Record<string, string>> = {
  id: "`<epoch>-<sequence>`, to resume with. The epoch changes when sequences start over.",
  event: "The type of the event.",
  data: "The event: CloudEvents 1.0 in structured JSON.",
}

/** Describes the fields of the stream, whose schema is the library's. */
const describeStream = (operation: Readonly<Record<string, unknown>>) => {
  // The library's own document: the responses of this operation.
  const { responses } = operation as {
    readonly responses: Readonly<
      Record<string, { readonly content?: Readonly<Record<string, Media>> }>
    >
  }
  const media = responses["200"]?.content?.["text/event-stream"]
  for (const [name, description] of Object.entries(stream_fields)) {
    const field = media?.schema.properties[name]
    if (field !== undefined) field.description = description
  }
  return operation
}

interface Media {
  readonly schema: { readonly properties: Readonly<Record<string, { description?: string }>> }
}

export const Events = HttpApiGroup.make("events")
  .annotate(OpenApi.Description, "Published events as a stream of server-sent events.")
  .add(
    HttpApiEndpoint.get("subscribe", "/v1/events", {
      query: {
        service: filterOf("these services"),
        type: filterOf("these types"),
        subject: Schema.optionalKey(Name).annotateKey({
          description: "Only events with this subject: the id of an aggregate.",
        }),
        since: Schema.optionalKey(Since),
        ticket: Schema.optionalKey(TicketText),
      },
      headers: {
        "last-event-id": Schema.optionalKey(EventId).annotateKey({
          description: "Continue after the event with this id. It overrides `since`.",
        }),
      },
      success: HttpApiSchema.StreamSse({ data: CloudEvent }),
      error: [Invalid, Forbidden, TooMany, BackendUnavailable],
    })
      .annotate(OpenApi.Transform, describeStream)
      .annotate(OpenApi.Summary, "Subscribe to published events")
      .annotate(
        OpenApi.Description,
        "Streams published events as server-sent events (CloudEvents 1.0 in `data`). A token " +
          "of a project receives the events of its project, a token with `blobs:read` those of " +
          "blob storage, and an admin's token all events. Without `since` or `Last-Event-ID` " +
          "the stream starts with new events. To resume, send the last id as `Last-Event-ID`; " +
          "after a restore of the log the first event is `state_restored`. A comment is sent " +
          "every 15 s. The stream ends when its token expires.",
      )
      .annotate(Needs, "authenticated")
      .annotate(Ticketed, "accepts")
      .annotate(Streamed, true),
    HttpApiEndpoint.post("ticket", "/v1/events/tickets", {
      success: Ticket.pipe(HttpApiSchema.status(201)),
      error: [Invalid, Forbidden, TooMany],
    })
      .annotate(KeyNotNeeded, "Each request issues a new ticket, which is valid for a minute.")
      .annotate(OpenApi.Summary, "Issue a ticket for an event stream")
      .annotate(
        OpenApi.Description,
        "Issues a ticket for the caller of this request. A browser's `EventSource` cannot " +
          "send a token, so it sends the ticket in the query of `GET /v1/events`. A ticket is " +
          "valid for one minute, or as long as a stream is open with it.",
      )
      .annotate(Needs, "authenticated")
      .annotate(Ticketed, "issues"),
  )
