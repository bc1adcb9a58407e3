/** Inspects a repository independently of the server: restic itself, with its password. */
import { Effect, Layer, type Redacted } from "effect"
import type { Bucket } from "#actors/share-protection/ports/buckets.ts"
import { Engine, type Repository } from "#actors/share-protection/ports/engine.ts"
import { Trusts } from "#actors/share-protection/ports/trusts.ts"
import { Vault } from "#actors/share-protection/ports/vault.ts"
import { engineRestic } from "#adapters/share-protection/engine-restic.ts"
import { openTrustStore } from "#adapters/share-protection/trust-store.ts"
import { inspector, trustsEmbedded } from "#adapters/share-protection/trusts-embedded.ts"
import { openVault, vaultEmbedded } from "#adapters/share-protection/vault-embedded.ts"

/** The password of a repository, through the tenant's trust. */
export const passwordOf = (data_dir: string, trust_id: string, href: string) =>
  Effect.gen(function* () {
    const trusts = yield* openTrustStore(data_dir)
    const vault = yield* openVault(data_dir)
    const both = Layer.mergeAll(trustsEmbedded(trusts), vaultEmbedded(vault, inspector(trusts)))
    return yield* Effect.gen(function* () {
      const delegation = yield* (yield* Trusts).redeem(trust_id)
      return yield* (yield* Vault).read(delegation, href)
    }).pipe(Effect.provide(both))
  })

/** The tags of each snapshot. */
export const snapshotTags = (repository: Repository, cache_dir: string) =>
  Effect.gen(function* () {
    const snapshots = yield* (yield* Engine).snapshots(repository)
    return snapshots.map(({ tags }) => tags)
  }).pipe(Effect.provide(engineRestic({ cache_dir })))

/**
 * Prunes and checks the repository with exclusive access: no lock remains, and all data is intact.
 */
export const maintained = (repository: Repository, cache_dir: string) =>
  Effect.flatMap(Engine, (engine) => engine.maintain(repository)).pipe(
    Effect.provide(engineRestic({ cache_dir })),
  )

export const repositoryIn = (bucket: Bucket, password: Redacted.Redacted<string>): Repository => ({
  ...bucket,
  password,
})
