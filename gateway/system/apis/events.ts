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
const expected_name = `Expected names of letters, digits, _ and -, with commas between them`
const too_many = `Expected at most ${names_max} names`

/** The names of a filter, whose parameter may also occur several times. */
export const namesOf = (parameter: string | ReadonlyArray<string> = []) =>
  [parameter].flat().flatMap((text) => text.split(","))

const Filter = Schema.optionalKey(
  Schema.Union([Names, Schema.Array(Names).check(Schema.isMaxLength(names_max))]),
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
).annotate({ description: "An event's id, or a time as 2026-11-22T08:00:00Z." })
export const isEventId = Schema.is(EventId)
const isInstant = (text: string) => Option.isSome(decodeInstant(text))
const decodeInstant = Schema.decodeUnknownOption(InstantMs)
const expected = "Expected an event's id, or a time as 2026-11-22T08:00:00Z"

/** Limits the length; the door validates the ticket. */
const TicketText = Schema.String.check(Schema.isMaxLength(ticket_chars_max)).annotate({
  description: "A ticket of POST /v1/events/tickets, in place of a token.",
})

const Ticket = Schema.Struct({
  ticket: Schema.String.annotate({
    description: "For the query parameter `ticket` of GET /v1/events, and for nothing else.",
  }),
  expires_at: Schema.String.annotate({
    description: "When it stops being valid unless a stream is open with it, RFC 3339 in UTC.",
  }),
})

export const Events = HttpApiGroup.make("events")
  .annotate(OpenApi.Description, "Published events.")
  .add(
    HttpApiEndpoint.get("subscribe", "/v1/events", {
      query: {
        service: Filter,
        type: Filter,
        subject: Schema.optionalKey(Name),
        since: Schema.optionalKey(Since),
        ticket: Schema.optionalKey(TicketText),
      },
      headers: { "last-event-id": Schema.optionalKey(EventId) },
      success: HttpApiSchema.StreamSse({ data: CloudEvent }),
      error: [Invalid, Forbidden, TooMany, BackendUnavailable],
    })
      .annotate(OpenApi.Summary, "Subscribe to published events")
      .annotate(Needs, "authenticated")
      .annotate(Ticketed, "accepts")
      .annotate(Streamed, true),
    HttpApiEndpoint.post("ticket", "/v1/events/tickets", {
      success: Ticket.pipe(HttpApiSchema.status(201)),
      error: [Invalid, Forbidden, TooMany],
    })
      .annotate(
        KeyNotNeeded,
        "Each request issues a ticket of its own, which is valid for a minute.",
      )
      .annotate(OpenApi.Summary, "Issue a ticket, by which a browser's EventSource subscribes")
      .annotate(Needs, "authenticated")
      .annotate(Ticketed, "issues"),
  )
