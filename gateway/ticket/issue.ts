/** `POST /v1/events/tickets`. Source: decision 0173. */
import { DateTime, Effect } from "effect"
import { Exhausted, holderOf } from "#gateway/budget.ts"
import type { Caller } from "#gateway/caller.ts"
import { RequestContext } from "#gateway/request-context.ts"
import { visibleTo } from "#gateway/system/visible.ts"
import { EventTickets, type NoTicket, ticket_ms } from "#gateway/ticket/tickets.ts"
import { Invalid } from "#schemas/system/rejection.ts"

const too_many = new Exhausted({
  status: 429,
  detail: "You have your share of tickets: open streams with those, or wait until they expire.",
  retry_after_s: ticket_ms / 1000,
})

const too_long = new Invalid({
  detail:
    "Your token is too long to be sealed into a URL: read GET /v1/events by fetch, which sends " +
    "headers, or use a shorter token.",
})

const refused = (reason: NoTicket) =>
  reason === "full" ? Effect.die(too_many) : Effect.fail(too_long)

/** The owner whose limit tickets count against, as for event streams. */
export const ownerOf = (caller: Caller, address: string) => {
  const [{ name } = { name: caller.actor }] = holderOf(caller, address).names
  return name
}

/** Issues a ticket for the caller of this request. */
export const issueTicket = Effect.gen(function* () {
  const { caller, address = "", proof } = yield* RequestContext
  const tickets = yield* EventTickets
  // A ticket is useless if the caller may not open a stream.
  yield* visibleTo(caller)
  if (tickets === undefined || proof === undefined) {
    return yield* Effect.die("Tickets are not set up.")
  }
  const issuing = tickets.issue(ownerOf(caller, address), proof.credentials)
  const { ticket, expires_ms } = yield* Effect.catch(issuing, refused)
  return { ticket, expires_at: DateTime.formatIso(DateTime.makeUnsafe(expires_ms)) }
})
