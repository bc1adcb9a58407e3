/**
 * Preflight: the checks of a bucket, made now and in the tenant's name.
 *
 * Source: document 2 §4 rule 6; DECISIONS, document 2, preflight.
 */
import { Clock, DateTime, Effect, Option, Redacted } from "effect"
import { address } from "#actors/commands.ts"
import { Buckets, preflightDetail } from "#actors/share-protection/buckets.ts"
import { Target } from "#actors/share-protection/target.ts"
import { Trusts } from "#actors/share-protection/trusts.ts"
import { Vault } from "#actors/share-protection/vault.ts"
import { Deployment } from "#gateway/share-protection/deployment.ts"
import { send } from "#gateway/share-protection/sending.ts"
import type { TargetRow } from "#projections/share-protection/target.ts"
import {
  BackendUnavailable,
  NotFound,
  TargetPreflightFailed,
} from "#schemas/share-protection/rejection.ts"
import { type Capabilities, RecordPreflight } from "#schemas/share-protection/target.ts"
import type { AddressingMode } from "#schemas/share-protection/target-template.ts"
import { reasonOf } from "#schemas/share-protection/text.ts"

/** Where a bucket is, and by which hrefs the keys to it are had. */
export interface Located {
  readonly endpoint: string
  readonly bucket: string
  readonly region: string | null
  readonly addressing_mode: AddressingMode
  readonly ca_cert_ref: string | null
  readonly trust_id: string
  readonly access_key_ref: string
  readonly secret_key_ref: string
}

/** Makes the checks. The keys are fetched by the trust, and nowhere kept. */
export const checked = Effect.fnUntraced(function* (located: Located) {
  const { endpoint, bucket, region, addressing_mode, ca_cert_ref } = located
  const buckets = yield* Effect.serviceOption(Buckets)
  if (Option.isNone(buckets)) {
    const detail = "Buckets cannot be checked here: there is no adapter to S3."
    return yield* new BackendUnavailable({ detail })
  }
  const { shape } = yield* Deployment
  const { read } = yield* Vault
  const by = yield* (yield* Trusts).redeem(located.trust_id)
  const ca_cert = ca_cert_ref === null ? null : Redacted.value(yield* read(by, ca_cert_ref))
  return yield* buckets.value.preflight(
    {
      ...{ endpoint, bucket, region, addressing_mode, ca_cert },
      access_key: yield* read(by, located.access_key_ref),
      secret_key: yield* read(by, located.secret_key_ref),
    },
    { shape: shape.name },
  )
})

const locate = (target: TargetRow): Located | undefined => {
  const { trust_id, access_key_ref, secret_key_ref } = target
  if (trust_id === null || access_key_ref === null || secret_key_ref === null) return undefined
  return { ...target, trust_id, access_key_ref, secret_key_ref }
}

const recorded = (target: TargetRow, capabilities: Capabilities | null, reason: string | null) =>
  Effect.gen(function* () {
    const at = DateTime.formatIso(DateTime.makeUnsafe(yield* Clock.currentTimeMillis))
    const command = RecordPreflight.make({
      capabilities,
      reason: reason === null ? null : reasonOf(reason),
      at,
    })
    yield* send([address(Target, target.id, command)], [NotFound])
  })

/** Checks a target's bucket now, and records what was found. */
export const preflight = Effect.fnUntraced(function* (target: TargetRow) {
  const located = locate(target)
  if (located === undefined) {
    const detail = preflightDetail("read_write", "the target has no trust or no keys yet.")
    return yield* new TargetPreflightFailed({ detail })
  }
  const capabilities = yield* checked(located).pipe(
    Effect.catchIf(
      (error) => error instanceof TargetPreflightFailed,
      (error) => Effect.andThen(recorded(target, null, error.detail), Effect.fail(error)),
    ),
  )
  yield* recorded(target, capabilities, null)
  return { target_id: target.id, status: "available" as const, detail: null }
})
