/**
 * Tickets replace a token in the URL of an event stream, because a browser's EventSource sends no
 * headers. A ticket is the caller's sealed credentials: it has exactly the caller's rights, and is
 * invalid once the token is revoked or expires. This process only stores when each was last used.
 *
 * Source: decision 0173.
 */
import { Clock, Context, Effect, Schema, type Scope } from "effect"
import type { Credentials, Seal } from "#gateway/identity.ts"

/** How long a ticket is valid after it is issued, and after the last stream opened with it ends. */
export const ticket_ms = 60_000

/** Maximum length of a ticket: URLs have 8,192 characters, and filters need some of them. */
export const ticket_chars_max = 7_168

/**
 * Number of tickets that a caller may have per allowed stream: more than one, because pages are
 * reloaded.
 */
export const tickets_per_stream = 4

/** `full`: the caller has too many; `long`: its token is too long for a URL. */
export type NoTicket = "full" | "long"

export interface Issued {
  readonly ticket: string
  /** When it expires unless a stream is open, in epoch milliseconds. */
  readonly expires_ms: number
}

export interface Tickets {
  /** Creates a ticket with these credentials, which counts against the limit of `owner`. */
  readonly issue: (owner: string, credentials: Credentials) => Effect.Effect<Issued, NoTicket>
  /**
   * The credentials in a ticket; undefined if it was not issued by this deployment or is invalid at
   * `now_ms`.
   */
  readonly open: (ticket: string, now_ms: number) => Credentials | undefined
  /** Keeps a ticket valid until the scope closes, and for `ticket_ms` after that. */
  readonly use: (owner: string, ticket: string) => Effect.Effect<void, never, Scope.Scope>
}

/** The tickets of this process; by default it issues and accepts none. */
export const EventTickets = Context.Reference<Tickets | undefined>("gateway/EventTickets", {
  defaultValue: () => undefined,
})

/** The sealed content. Elsewhere the token is a function, which logs do not print. */
const Sealed = Schema.fromJsonString(
  Schema.Struct({
    token: Schema.optionalKey(Schema.String),
    subjects: Schema.optionalKey(Schema.Array(Schema.String)),
    expires_ms: Schema.Int,
  }),
)
const encode = Schema.encodeSync(Sealed)
const decode = Schema.decodeUnknownSync(Sealed)

/** A ticket that was recently issued or used in this process. */
interface Known {
  readonly owner: string
  expires_ms: number
  streams: number
}

/** Tickets with this seal, at most `per_caller_max` of each caller at a time. */
export const ticketsWith = ({ seal, unseal }: Seal, per_caller_max: number): Tickets => {
  const known = new Map<string, Known>()
  const count = (owner: string, now_ms: number) => {
    let own = 0
    for (const [ticket, one] of known) {
      if (one.streams === 0 && one.expires_ms <= now_ms) known.delete(ticket)
      else if (one.owner === owner) own++
    }
    return own
  }
  return {
    issue: Effect.fnUntraced(function* (owner, { token, certificate }) {
      const now_ms = yield* Clock.currentTimeMillis
      if (count(owner, now_ms) >= per_caller_max) return yield* Effect.fail("full" as const)
      const expires_ms = now_ms + ticket_ms
      const ticket = seal(
        encode({
          ...(token !== undefined && { token: token() }),
          ...(certificate !== undefined && { subjects: certificate.subjects }),
          expires_ms,
        }),
      )
      if (ticket.length > ticket_chars_max) return yield* Effect.fail("long" as const)
      known.set(ticket, { owner, expires_ms, streams: 0 })
      return { ticket, expires_ms }
    }),
    open: (ticket, now_ms) => {
      const text = unseal(ticket)
      if (text === undefined) return undefined
      const { token, subjects, expires_ms } = decode(text)
      const { streams = 0, expires_ms: renewed_ms = 0 } = known.get(ticket) ?? {}
      if (streams === 0 && Math.max(expires_ms, renewed_ms) <= now_ms) return undefined
      return {
        token: token === undefined ? undefined : () => token,
        certificate: subjects && { subjects },
      }
    },
    use: (owner, ticket) =>
      Effect.acquireRelease(
        Effect.sync(() => {
          const one = known.get(ticket) ?? { owner, expires_ms: 0, streams: 0 }
          one.streams++
          known.set(ticket, one)
          return one
        }),
        (one) =>
          Effect.map(Clock.currentTimeMillis, (now_ms) => {
            one.streams--
            one.expires_ms = now_ms + ticket_ms
          }),
      ),
  }
}
