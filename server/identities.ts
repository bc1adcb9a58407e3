/** Identity, issued tokens and tickets. */
import { Context, Effect, Redacted } from "effect"
import { stale_ms_max } from "#actors/system/issued-tokens.ts"
import { tokenIssuer } from "#adapters/identity/identity.ts"
import { retryKey } from "#adapters/identity/repeated-credential.ts"
import { openTokenStore } from "#adapters/identity/token-store.ts"
import { inboxOf, userOf } from "#adapters/published/subscriber-users.ts"
import { ticketSeal } from "#adapters/system/event-tickets.ts"
import { adoptTokens, issuedTokens } from "#adapters/system/issued-tokens.ts"
import { type NatsLogin, NatsServer } from "#bus"
import { TokenIssuer } from "#gateway/identity.ts"
import { EventTickets, tickets_per_stream, ticketsWith } from "#gateway/ticket/tickets.ts"
import type { Settings } from "#schemas/settings.ts"
import { cloud } from "#server/share-protection/cloud.ts"
import { embedded } from "#server/share-protection/embedded.ts"

/** Scopes and roles of the control token, for operators on this machine. */
const control = {
  name: "control",
  scopes: ["blobs:read", "blobs:write", "cluster:admin"],
  roles: ["admin", "svc_admin"],
} as const

const passwordOf = ({ password }: NatsLogin = {}) =>
  password === undefined ? "" : Redacted.value(password)

/** Authenticates callers. The first startup of the embedded identity creates credentials. */
export const identities = Effect.fnUntraced(function* (settings: Settings) {
  const store = yield* openTokenStore(settings.data.dir)
  yield* adoptTokens(store, control.name)
  const of_machine = tokenIssuer(store)
  yield* of_machine.revoke(control.name)
  const control_token = yield* of_machine.issue(control)
  // If an embedded bus is down, no one can revoke tokens, and blob requests do not need the bus.
  const stale_ms = settings.nats.url === "" ? Infinity : stale_ms_max
  const { tokens: issued, issuer } = yield* issuedTokens(stale_ms, yield* retryKey(settings))
  const own = { store, issued }
  const per_caller_max = tickets_per_stream * settings.api.max_event_streams_per_caller
  const tickets = ticketsWith(ticketSeal(settings), per_caller_max)
  const known = Context.add(Context.make(TokenIssuer, issuer), EventTickets, tickets)
  if (settings.identity.kind === "keystone") {
    return { control_token, known: Context.merge(known, yield* cloud(settings, own)) }
  }
  const { subscriber, subscribers, servers } = yield* NatsServer
  const nats = {
    url: servers.join(","),
    user: subscriber?.user ?? "",
    password: passwordOf(subscriber),
    ...(subscribers.size > 0 && {
      subscribers: Object.fromEntries(
        [...subscribers].map(([name, login]) => [
          name,
          { user: userOf(name), password: passwordOf(login), inbox_prefix: inboxOf(name) },
        ]),
      ),
    }),
  }
  return { control_token, known: Context.merge(known, yield* embedded(settings, own, nats)) }
})
