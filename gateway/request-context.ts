/** What handlers know about their request. */
import { Clock, Context, DateTime, Effect, Schema } from "effect"
import type { Unavailable } from "#actors/commands.ts"
import type { Origin } from "#events/log.ts"
import type { Caller } from "#gateway/caller.ts"
import type { Credentials } from "#gateway/identity.ts"

/** The credentials of the caller. Never logged and never stored: they have the token. */
export interface Proof {
  readonly credentials: Credentials
  /** The ticket that replaced the token, if any. */
  readonly ticket?: string | undefined
  /** Whether it is still valid: a stream outlives tokens. True while that cannot be known. */
  readonly holds: Effect.Effect<boolean>
}

export interface RequestContext {
  /** Always new; the response has it as `X-Request-Id`. */
  readonly request_id: string
  /** The caller's own `X-Request-Id`, or ours. */
  readonly correlation_id: string
  readonly caller: Caller
  /** The other end's IP address; empty where it is not known. */
  readonly address?: string
  /** Names the command: from `Idempotency-Key` and who sent it, or from the request's id. */
  readonly command_id: string
  /** The proof of identity, only for endpoints that are `Ticketed`. */
  readonly proof?: Proof | undefined
  /** A fingerprint of a request with an `Idempotency-Key`; computed on demand. */
  readonly fingerprint?: Effect.Effect<string> | undefined
}

/** Thrown: the door responds 422. The key was used with another request before. */
export class KeyReused extends Schema.TaggedError<KeyReused>()("KeyReused", {}) {}

/** The service's failure of a command that was not carried out, or KeyReused. */
export const notDone =
  <E>(worded: (failure: Unavailable) => E) =>
  (failure: Unavailable): Effect.Effect<never, E> =>
    failure.is_reused === true ? Effect.die(new KeyReused()) : Effect.fail(worded(failure))

/** Set by the door for each request. */
export const RequestContext = Context.Reference<RequestContext>("gateway/RequestContext", {
  defaultValue: () => {
    throw new Error("There is no request here.")
  },
})

/** The origin of the command that this request sends. */
export const origin = Effect.gen(function* () {
  const { request_id, correlation_id, caller, command_id, ...rest } = yield* RequestContext
  const at = DateTime.formatIso(DateTime.makeUnsafe(yield* Clock.currentTimeMillis))
  const origin: Origin = { command_id, actor: caller.actor, at, request_id, correlation_id }
  if (rest.fingerprint === undefined) return origin
  return { ...origin, fingerprint: yield* rest.fingerprint } satisfies Origin
})
