/**
 * A bucket with its keys, which are fetched as a tenant's trust allows, and nowhere kept.
 *
 * Source: document 2 §1 Secrets.
 */
import { Effect, Redacted } from "effect"
import type { Bucket } from "#actors/share-protection/ports/buckets.ts"
import type { Delegation } from "#actors/share-protection/ports/trusts.ts"
import { Vault } from "#actors/share-protection/ports/vault.ts"
import type { VaultSecretMap } from "#schemas/share-protection/target.ts"

/** Where a bucket is, and by which hrefs the keys to it are had. */
export interface Located
  extends Pick<Bucket, "endpoint" | "bucket" | "region" | "addressing_mode"> {
  readonly ca_cert_ref: string | null
  readonly vault_secret_map: VaultSecretMap
}

/** The bucket as a client of S3 needs it. */
export const withKeys = Effect.fnUntraced(function* (located: Located, by: Delegation) {
  const { endpoint, bucket, region, addressing_mode, ca_cert_ref, vault_secret_map } = located
  const { read } = yield* Vault
  const ca_cert = ca_cert_ref === null ? null : Redacted.value(yield* read(by, ca_cert_ref))
  const opened: Bucket = {
    endpoint,
    bucket,
    region,
    addressing_mode,
    ca_cert,
    access_key: yield* read(by, vault_secret_map.access_key),
    secret_key: yield* read(by, vault_secret_map.secret_key),
  }
  return opened
})
