/**
 * Sends the commands of requests, idempotently, and waits until the read model shows them.
 *
 * Source: DESIGN of the running system, 2 to 4; DECISIONS, "request ids".
 */
import { Effect } from "effect"
import { Commands } from "#actors/commands.ts"
import type { Batch } from "#actors/share-protection/requests.ts"
import { commandFailure, KeyReused, origin, RequestContext } from "#gateway/request-context.ts"
import { Transport } from "#gateway/transport.ts"
import { ShareProtectionModel } from "#projections/share-protection/blueprint.ts"
import { findReceipt } from "#projections/share-protection/receipt.ts"
import { BackendUnavailable, type Rejection } from "#schemas/share-protection/rejection.ts"

/** A class of rejections. */
type RejectionClass = abstract new (...fields: never) => Rejection

export const unavailable = ({ detail }: { readonly detail: string }) =>
  new BackendUnavailable({ detail })

/**
 * Sends the commands and returns their position once the read model shows it.
 *
 * Fails with the expected rejections; any other rejection is a bug and dies. `part` distinguishes
 * commands of one request after the first batch.
 */
export const send = Effect.fnUntraced(function* <
  const Expected extends ReadonlyArray<RejectionClass>,
>(batch: Batch, expected: Expected, part = "") {
  const { waitFor } = yield* ShareProtectionModel
  const request = yield* origin
  const command_id = `${request.command_id}${part}`
  const position = yield* (yield* Commands).send({ ...request, command_id }, ...batch).pipe(
    Effect.catch((refusal) => {
      if (!("code" in refusal)) return commandFailure(unavailable)(refusal)
      const is_expected = expected.some((Class) => refusal instanceof Class)
      // An instance of one of these classes belongs to their union.
      const known = refusal as InstanceType<Expected[number]>
      return is_expected ? Effect.fail(known) : Effect.die(refusal)
    }),
  )
  yield* Effect.mapError(waitFor(position), unavailable)
  return position
})

/** Waits until the read model shows everything in the log. */
export const caughtUp = Effect.flatMap(ShareProtectionModel, ({ catchUp }) =>
  Effect.mapError(catchUp, unavailable),
)

/** A created resource, and the position at which the read model shows it. */
export interface Created {
  readonly id: string
  readonly position: number
}

/**
 * Creates an `aggregate` under a new id, unless an earlier request with the same key did.
 *
 * `make` sends the commands that create it under the given id, and returns their position.
 */
export const createOnce = Effect.fnUntraced(function* <E, R>(
  aggregate: string,
  make: (id: string) => Effect.Effect<number, E, R>,
) {
  const { command_id, request_id, ...context } = yield* RequestContext
  const id = (yield* Transport).newId()
  // A request without a key is never repeated.
  if (command_id === request_id) return { id, position: yield* make(id) } satisfies Created
  const { db, position } = yield* ShareProtectionModel
  const earlier = Effect.andThen(caughtUp, findReceipt(db, command_id, aggregate))
  const known = yield* earlier
  const before = known?.fingerprint ?? null
  if (before !== null && context.fingerprint !== undefined) {
    const is_same = before === (yield* context.fingerprint)
    if (!is_same) return yield* Effect.die(new KeyReused())
  }
  if (known === undefined) yield* make(id)
  // The log accepts only one of several concurrent requests, which may not be this one.
  const created = known ?? (yield* earlier)
  return { id: created?.resource_id ?? id, position: yield* position } satisfies Created
})
