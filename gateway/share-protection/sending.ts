/**
 * Requests as commands: sent, seen in the read model, and done once however often they come.
 *
 * Source: DESIGN of the running system, 2 to 4; DECISIONS, "request ids".
 */
import { Effect } from "effect"
import { Commands } from "#actors/commands.ts"
import type { Batch } from "#actors/share-protection/requests.ts"
import { KeyReused, notDone, origin, RequestContext } from "#gateway/request-context.ts"
import { Transport } from "#gateway/transport.ts"
import { ShareProtectionModel } from "#projections/share-protection/blueprint.ts"
import { findReceipt } from "#projections/share-protection/receipt.ts"
import { BackendUnavailable, type Rejection } from "#schemas/share-protection/rejection.ts"

/** A class of rejections. */
type Refusal = abstract new (...fields: never) => Rejection

export const unavailable = ({ detail }: { readonly detail: string }) =>
  new BackendUnavailable({ detail })

/**
 * Answers the position that shows what the commands did, which the read model shows by then.
 *
 * It fails with these refusals; whatever else an aggregate refuses is a mistake of ours.
 * `part` names what a request sends besides its first commands.
 */
export const send = Effect.fnUntraced(function* <const Expected extends ReadonlyArray<Refusal>>(
  batch: Batch,
  expected: Expected,
  part = "",
) {
  const { waitFor } = yield* ShareProtectionModel
  const asked = yield* origin
  const command_id = `${asked.command_id}${part}`
  const position = yield* (yield* Commands).send({ ...asked, command_id }, ...batch).pipe(
    Effect.catch((refusal) => {
      if (!("code" in refusal)) return notDone(unavailable)(refusal)
      const is_expected = expected.some((Class) => refusal instanceof Class)
      // What is of one of these classes is of their union.
      const known = refusal as InstanceType<Expected[number]>
      return is_expected ? Effect.fail(known) : Effect.die(refusal)
    }),
  )
  yield* Effect.mapError(waitFor(position), unavailable)
  return position
})

/** All that the log holds now is shown after it. */
export const caughtUp = Effect.flatMap(ShareProtectionModel, ({ catchUp }) =>
  Effect.mapError(catchUp, unavailable),
)

/** What was made, and the position that shows it. */
export interface Made {
  readonly id: string
  readonly position: number
}

/**
 * Makes an `aggregate` under a fresh id, unless a request with the same key made one before.
 *
 * `make` sends the commands that make the one of this id and answers their position.
 */
export const once = Effect.fnUntraced(function* <E, R>(
  aggregate: string,
  make: (id: string) => Effect.Effect<number, E, R>,
) {
  const { command_id, request_id, ...asked } = yield* RequestContext
  const id = (yield* Transport).newId()
  // A request without a key is never sent again.
  if (command_id === request_id) return { id, position: yield* make(id) } satisfies Made
  const { db, position } = yield* ShareProtectionModel
  const earlier = Effect.andThen(caughtUp, findReceipt(db, command_id, aggregate))
  const known = yield* earlier
  const before = known?.fingerprint ?? null
  if (before !== null && asked.fingerprint !== undefined) {
    const is_same = before === (yield* asked.fingerprint)
    if (!is_same) return yield* Effect.die(new KeyReused())
  }
  if (known === undefined) yield* make(id)
  // Of several at the same time the log has taken one, which may not be this one.
  const made = known ?? (yield* earlier)
  return { id: made?.resource_id ?? id, position: yield* position } satisfies Made
})
