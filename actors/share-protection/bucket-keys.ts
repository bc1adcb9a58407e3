/**
 * Reads the keys of a bucket from the vault with a tenant's delegation. They are never stored.
 *
 * Source: document 2 §1 Secrets.
 */
import { Effect, Redacted } from "effect"
import type { Bucket } from "#actors/share-protection/ports/buckets.ts"
import type { Delegation } from "#actors/share-protection/ports/trusts.ts"
import { Vault } from "#actors/share-protection/ports/vault.ts"
import type { VaultSecretMap } from "#schemas/share-protection/target.ts"

/** The location of a bucket and the hrefs of its keys. */
export interface BucketLocation
  extends Pick<Bucket, "endpoint" | "bucket" | "region" | "addressing_mode"> {
  readonly ca_cert_ref: string | null
  readonly vault_secret_map: VaultSecretMap
}

/** The bucket with the keys that an S3 client needs. */
export const withKeys = Effect.fnUntraced(function* (location: BucketLocation, by: Delegation) {
  const { endpoint, bucket, region, addressing_mode, ca_cert_ref, vault_secret_map } = location
  const { read } = yield* Vault
  const ca_cert = ca_cert_ref === null ? null : Redacted.value(yield* read(by, ca_cert_ref))
  const bucket_with_keys: Bucket = {
    endpoint,
    bucket,
    region,
    addressing_mode,
    ca_cert,
    access_key: yield* read(by, vault_secret_map.access_key),
    secret_key: yield* read(by, vault_secret_map.secret_key),
  }
  return bucket_with_keys
})
