/** What the front door knows about a request, for whoever handles it. */
import { Clock, Context, DateTime, Effect, Schema } from "effect"
import type { Unavailable } from "#actors/commands.ts"
import type { Origin } from "#events/log.ts"
import type { Caller } from "#gateway/caller.ts"
import type { Credentials } from "#gateway/identity.ts"

/** What the caller showed. Never logged and never stored: it has the token. */
export interface Proof {
  readonly credentials: Credentials
  /** The ticket that stood for the token, if one did. */
  readonly ticket?: string | undefined
  /** Whether it is still valid: a stream outlives tokens. True while that cannot be known. */
  readonly holds: Effect.Effect<boolean>
}

export interface RequestContext {
  /** Always fresh; answered as `X-Request-Id`. */
  readonly request_id: string
  /** The caller's own `X-Request-Id`, or ours. */
  readonly correlation_id: string
  readonly caller: Caller
  /** The other end's IP address; empty where it is not known. */
  readonly address?: string
  /** Names the command: from `Idempotency-Key` and who sent it, or from the request's id. */
  readonly command_id: string
  /** How the caller proved who they are, for endpoints that are `Ticketed` alone. */
  readonly proof?: Proof | undefined
  /** Of what is asked, where an `Idempotency-Key` names it; made only when it is asked for. */
  readonly fingerprint?: Effect.Effect<string> | undefined
}

/** Thrown: the front door answers 422. The key of the request came with something else before. */
export class KeyReused extends Schema.TaggedError<KeyReused>()("KeyReused", {}) {}

/** A command that was not carried out, in the service's words; as KeyReused where it is that. */
export const notDone =
  <E>(worded: (failure: Unavailable) => E) =>
  (failure: Unavailable): Effect.Effect<never, E> =>
    failure.is_reused === true ? Effect.die(new KeyReused()) : Effect.fail(worded(failure))

/** Set by the front door for each request. */
export const RequestContext = Context.Reference<RequestContext>("gateway/RequestContext", {
  defaultValue: () => {
    throw new Error("There is no request here.")
  },
})

/** The origin of the command that this request is. */
export const origin = Effect.gen(function* () {
  const { request_id, correlation_id, caller, command_id, ...asked } = yield* RequestContext
  const at = DateTime.formatIso(DateTime.makeUnsafe(yield* Clock.currentTimeMillis))
  const origin: Origin = { command_id, actor: caller.actor, at, request_id, correlation_id }
  if (asked.fingerprint === undefined) return origin
  return { ...origin, fingerprint: yield* asked.fingerprint } satisfies Origin
})
