/**
 * An agent's dependencies: the engine, the buckets, and the trusts, secrets and shares of its
 * tenants. The first job loads what only jobs need, so that idle agents stay small.
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
import {
  inspectorFromReader,
  trustReader,
  trustsFromReader,
} from "#adapters/share-protection/trust-reader.ts"
import { openVault, vaultEmbedded } from "#adapters/share-protection/vault-embedded.ts"
import type { IdentityUnavailable } from "#gateway/identity.ts"
import type { Settings } from "#schemas/settings.ts"
import { ProjectId } from "#schemas/share-protection/id.ts"

/** Folders for the engine's cache, which can be rebuilt, and for temporary files of a job. */
export const engineFolders = ({ data }: Pick<Settings, "data">) => ({
  cache_dir: join(data.dir, "engine", "cache"),
  scratch_dir: join(data.dir, "engine", "scratch"),
})

/** A tenant's files are readable by the owner only. */
const folder_mode = 0o700

/** The engine of these settings; the error names what to install. */
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

/** Buckets over S3; the client is loaded on the first request. */
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
    preflight: (...args) => Effect.flatMap(s3, ({ preflight }) => preflight(...args)),
    reach: (...args) => Effect.flatMap(s3, ({ reach }) => reach(...args)),
    usage: (...args) => Effect.flatMap(s3, ({ usage }) => usage(...args)),
    protectedUntil: (...args) =>
      Effect.flatMap(s3, ({ protectedUntil }) => protectedUntil(...args)),
    extendLocks: (...args) => Effect.flatMap(s3, ({ extendLocks }) => extendLocks(...args)),
    retention: (...args) => Effect.flatMap(s3, ({ retention }) => retention(...args)),
    purge: (...args) => Effect.flatMap(s3, ({ purge }) => purge(...args)),
    recoverableUntil: (...args) =>
      Effect.flatMap(s3, ({ recoverableUntil }) => recoverableUntil(...args)),
    undelete: (...args) => Effect.flatMap(s3, ({ undelete }) => undelete(...args)),
  })
})

/** Trusts, secrets and shares in the data folder, which the server has locked. */
const embedded = Effect.fnUntraced(function* ({ data, shares }: Settings) {
  const read = yield* trustReader(data.dir)
  const vault = yield* openVault(data.dir)
  return Layer.mergeAll(
    trustsFromReader(read),
    vaultEmbedded(vault, inspectorFromReader(read)),
    sharesEmbedded({ root: shares.root, snapshots: () => shares.snapshots }),
  )
})

type Tenants = Shares | Trusts | Vault

/** The tenants' resources: embedded, or in the cloud. */
export const tenants = (settings: Settings): Layer.Layer<Tenants, IdentityUnavailable> => {
  if (settings.identity.kind === "embedded") return Layer.unwrap(embedded(settings))
  const cloud = Effect.promise(() => import("#server/share-protection/cloud.ts"))
  return Layer.unwrap(Effect.map(cloud, ({ cloudTenants }) => cloudTenants(settings)))
}

/** The project of the workers. */
export const workerProject = (settings: Settings) =>
  Effect.gen(function* () {
    const { worker_project } = yield* (yield* Trusts).service
    return ProjectId.make(worker_project.id)
  }).pipe(Effect.provide(tenants(settings)))
