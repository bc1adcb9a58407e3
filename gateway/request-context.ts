/** What the front door knows about a request, for whoever handles it. */
import { Clock, Context, DateTime, Effect } from "effect"
import type { Origin } from "#events/log.ts"
import type { Caller } from "#gateway/caller.ts"

export interface RequestContext {
  /** Always fresh; answered as `X-Request-Id`. */
  readonly request_id: string
  /** The caller's own `X-Request-Id`, or ours. */
  readonly correlation_id: string
  readonly caller: Caller
  /** Names the command: from `Idempotency-Key` and who sent it, or from the request's id. */
  readonly command_id: string
}

/** Set by the front door for each request. */
export const RequestContext = Context.Reference<RequestContext>("gateway/RequestContext", {
  defaultValue: () => {
    throw new Error("There is no request here.")
  },
})

/** The origin of the command that this request is. */
export const origin = Effect.gen(function* () {
  const { request_id, correlation_id, caller, command_id } = yield* RequestContext
  const at = DateTime.formatIso(DateTime.makeUnsafe(yield* Clock.currentTimeMillis))
  const origin: Origin = { command_id, actor: caller.actor, at, request_id, correlation_id }
  return origin
})
