/**
 * Preflight: checks of a bucket, run immediately and on behalf of the tenant.
 *
 * Source: document 2 §4 rule 6; DECISIONS, document 2, preflight.
 */
import { Clock, DateTime, Effect, Option } from "effect"
import { address } from "#actors/commands.ts"
import { type BucketLocation, withKeys } from "#actors/share-protection/bucket-keys.ts"
import { Buckets, preflightDetail } from "#actors/share-protection/ports/buckets.ts"
import { Trusts } from "#actors/share-protection/ports/trusts.ts"
import { Target } from "#actors/share-protection/target.ts"
import { send } from "#gateway/share-protection/commands.ts"
import { Deployment } from "#gateway/share-protection/deployment.ts"
import {
  BackendUnavailable,
  NotFound,
  TargetPreflightFailed,
} from "#schemas/share-protection/rejection.ts"
import {
  type Capabilities,
  RecordPreflight,
  type TargetRow,
} from "#schemas/share-protection/target.ts"
import { reasonOf } from "#schemas/share-protection/text.ts"

/** Runs the checks with the keys that the trust provides. */
export const runChecks = Effect.fnUntraced(function* (located: BucketLocation, trust_id: string) {
  const buckets = yield* Effect.serviceOption(Buckets)
  if (Option.isNone(buckets)) {
    const detail = "Buckets cannot be checked: S3 is not configured."
    return yield* new BackendUnavailable({ detail })
  }
  const { shape } = yield* Deployment
  const bucket = yield* withKeys(located, yield* (yield* Trusts).redeem(trust_id))
  return yield* buckets.value.preflight(bucket, { shape: shape.name })
})

const locate = (target: TargetRow) => {
  const { trust_id, access_key_ref: access_key, secret_key_ref: secret_key } = target
  if (trust_id === null || access_key === null || secret_key === null) return undefined
  return { trust_id, place: { ...target, vault_secret_map: { access_key, secret_key } } }
}

const record = (target: TargetRow, capabilities: Capabilities | null, reason: string | null) =>
  Effect.gen(function* () {
    const at = DateTime.formatIso(DateTime.makeUnsafe(yield* Clock.currentTimeMillis))
    const command = RecordPreflight.make({
      capabilities,
      reason: reason === null ? null : reasonOf(reason),
      at,
    })
    yield* send([address(Target, target.id, command)], [NotFound])
  })

/** Checks a target's bucket now, and records the result. */
export const preflight = Effect.fnUntraced(function* (target: TargetRow) {
  const located = locate(target)
  if (located === undefined) {
    const detail = preflightDetail("read_write", "the target has no trust or no secrets.")
    return yield* new TargetPreflightFailed({ detail })
  }
  const capabilities = yield* runChecks(located.place, located.trust_id).pipe(
    Effect.catchIf(
      (error) => error instanceof TargetPreflightFailed,
      (error) => Effect.andThen(record(target, null, error.detail), Effect.fail(error)),
    ),
  )
  yield* record(target, capabilities, null)
  return { target_id: target.id, status: "available" as const, detail: null }
})
