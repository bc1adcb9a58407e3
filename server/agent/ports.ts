/**
 * What an agent works with: the engine, the buckets, and the trusts, secrets and shares of its
 * tenants. What a job alone needs is loaded by the first job: an agent that idles stays small.
 */
import { mkdir } from "node:fs/promises"
import { join } from "node:path"
import { Effect, Layer } from "effect"
import { Buckets } from "#actors/share-protection/ports/buckets.ts"
import type { Shares } from "#actors/share-protection/ports/shares.ts"
import { Trusts } from "#actors/share-protection/ports/trusts.ts"
import type { Vault } from "#actors/share-protection/ports/vault.ts"
import { type AddressRule, addressRule } from "#adapters/outside/address.ts"
import { sharesEmbedded } from "#adapters/share-protection/shares/embedded.ts"
import { inspectorRead, trustReader, trustsRead } from "#adapters/share-protection/trust-reader.ts"
import { openVault, vaultEmbedded } from "#adapters/share-protection/vault-embedded.ts"
import type { IdentityUnavailable } from "#gateway/identity.ts"
import type { Settings } from "#schemas/settings.ts"
import { ProjectId } from "#schemas/share-protection/id.ts"

/** For what the engine can always make again, and for what lives no longer than a job. */
export const engineFolders = ({ data }: Pick<Settings, "data">) => ({
  cache_dir: join(data.dir, "engine", "cache"),
  scratch_dir: join(data.dir, "engine", "scratch"),
})

/** Only we may see what is in a tenant's files. */
const folder_mode = 0o700

/** The engine of these settings; fails with what to install. */
export const engine = (settings: Settings) =>
  Layer.unwrap(
    Effect.gen(function* () {
      const { cache_dir, scratch_dir } = engineFolders(settings)
      const { engineRestic } = yield* Effect.promise(
        () => import("#adapters/share-protection/engine-restic.ts"),
      )
      for (const folder of [cache_dir, scratch_dir]) {
        yield* Effect.promise(() => mkdir(folder, { recursive: true, mode: folder_mode }))
      }
      const { binary, upload_kib_per_second, download_kib_per_second } = settings.engine
      const limits = { upload_kib_per_second, download_kib_per_second }
      const isAllowed = addressRule(settings.targets.allowed_networks)
      return engineRestic({ cache_dir, limits, isAllowed, ...(binary !== "" && { binary }) })
    }),
  )

/** Buckets over S3, whose client is loaded when it is first asked. */
export const buckets = ({ targets }: Pick<Settings, "targets">) =>
  Layer.effect(Buckets, lazyBuckets(addressRule(targets.allowed_networks)))

const lazyBuckets = Effect.fnUntraced(function* (isAllowed: AddressRule) {
  const scope = yield* Effect.scope
  const load = Effect.promise(() => import("#adapters/share-protection/s3/buckets.ts")).pipe(
    Effect.flatMap(({ bucketsS3Within }) =>
      Layer.buildWithScope(bucketsS3Within({ isAllowed }), scope),
    ),
  )
  const loaded = yield* Effect.cached(load)
  const s3 = Effect.provide(Buckets, Layer.effectContext(loaded))
  return Buckets.of({
    preflight: (...asked) => Effect.flatMap(s3, ({ preflight }) => preflight(...asked)),
    reach: (...asked) => Effect.flatMap(s3, ({ reach }) => reach(...asked)),
    usage: (...asked) => Effect.flatMap(s3, ({ usage }) => usage(...asked)),
    protectedUntil: (...asked) =>
      Effect.flatMap(s3, ({ protectedUntil }) => protectedUntil(...asked)),
    extendLocks: (...asked) => Effect.flatMap(s3, ({ extendLocks }) => extendLocks(...asked)),
    retention: (...asked) => Effect.flatMap(s3, ({ retention }) => retention(...asked)),
    purge: (...asked) => Effect.flatMap(s3, ({ purge }) => purge(...asked)),
    recoverableUntil: (...asked) =>
      Effect.flatMap(s3, ({ recoverableUntil }) => recoverableUntil(...asked)),
    undelete: (...asked) => Effect.flatMap(s3, ({ undelete }) => undelete(...asked)),
  })
})

/** Trusts, secrets and shares in the server's data folder, of which the server has the lock. */
const embedded = Effect.fnUntraced(function* ({ data, shares }: Settings) {
  const read = yield* trustReader(data.dir)
  const vault = yield* openVault(data.dir)
  return Layer.mergeAll(
    trustsRead(read),
    vaultEmbedded(vault, inspectorRead(read)),
    sharesEmbedded({ root: shares.root, snapshots: () => shares.snapshots }),
  )
})

type Tenants = Shares | Trusts | Vault

/** What tenants let the agent at: here, or in the cloud. */
export const tenants = (settings: Settings): Layer.Layer<Tenants, IdentityUnavailable> => {
  if (settings.identity.kind === "embedded") return Layer.unwrap(embedded(settings))
  const cloud = Effect.promise(() => import("#server/share-protection/cloud.ts"))
  return Layer.unwrap(Effect.map(cloud, ({ cloudTenants }) => cloudTenants(settings)))
}

/** The project that workers are in. */
export const workerProject = (settings: Settings) =>
  Effect.gen(function* () {
    const { worker_project } = yield* (yield* Trusts).service
    return ProjectId.make(worker_project.id)
  }).pipe(Effect.provide(tenants(settings)))
