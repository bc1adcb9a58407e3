/** The context of a request, for its handlers. */
import { Clock, Context, DateTime, Effect, Schema } from "effect"
import type { Unavailable } from "#actors/commands.ts"
import type { Origin } from "#events/log.ts"
import type { Caller } from "#gateway/caller.ts"
import type { Credentials } from "#gateway/identity.ts"

/** The credentials of the caller. Never logged or stored, because they contain the token. */
export interface Proof {
  readonly credentials: Credentials
  /** The ticket that replaced the token, if any. */
  readonly ticket?: string | undefined
  /**
   * Whether the credentials are still valid, because a stream outlives tokens. True while that is
   * unknown.
   */
  readonly holds: Effect.Effect<boolean>
}

export interface RequestContext {
  /** Always generated; returned in `X-Request-Id`. */
  readonly request_id: string
  /** The caller's `X-Request-Id`, or else `request_id`. */
  readonly correlation_id: string
  readonly caller: Caller
  /** The client's IP address; empty if unknown. */
  readonly address?: string
  /**
   * Identifies the command: derived from `Idempotency-Key` and the caller, or else the request's
   * id.
   */
  readonly command_id: string
  /** The proof of identity, only for endpoints that are `Ticketed`. */
  readonly proof?: Proof | undefined
  /** A fingerprint of a request with an `Idempotency-Key`; computed on demand. */
  readonly fingerprint?: Effect.Effect<string> | undefined
}

/** Thrown if the key was used with a different request before: the door responds with 422. */
export class KeyReused extends Schema.TaggedError<KeyReused>()("KeyReused", {}) {}

/** Maps the failure of a command to KeyReused or to the service's own failure. */
export const commandFailure =
  <E>(toFailure: (failure: Unavailable) => E) =>
  (failure: Unavailable): Effect.Effect<never, E> =>
    failure.is_reused === true ? Effect.die(new KeyReused()) : Effect.fail(toFailure(failure))

/** Set by the door for each request. */
export const RequestContext = Context.Reference<RequestContext>("gateway/RequestContext", {
  defaultValue: () => {
    throw new Error("No request is being handled.")
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
