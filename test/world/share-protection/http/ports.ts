/** The in-memory services behind the API; tests change their state through `World`. */
import { Context, Effect, Layer, Redacted, Stream } from "effect"
import { Buckets, preflightDetail } from "#actors/share-protection/ports/buckets.ts"
import { Images } from "#actors/share-protection/ports/compute.ts"
import { type Share, Shares } from "#actors/share-protection/ports/shares.ts"
import { denials, Trusts } from "#actors/share-protection/ports/trusts.ts"
import { secret_denied, Vault } from "#actors/share-protection/ports/vault.ts"
import { ProjectId, ShareId } from "#schemas/share-protection/id.ts"
import {
  BackendUnavailable,
  TargetPreflightFailed,
  TrustAccessDenied,
} from "#schemas/share-protection/rejection.ts"
import type { Capabilities, PreflightCheck } from "#schemas/share-protection/target.ts"
import { secretRef, uuid } from "../samples.ts"

export const project_a = ProjectId.make("a".repeat(32))
export const project_b = ProjectId.make("b".repeat(32))
export const domain_id = "d".repeat(32)
export const share_a = ShareId.make(uuid(21))
export const share_a2 = ShareId.make(uuid(22))
export const share_b = ShareId.make(uuid(23))
export const trust_a = "trust-of-project-a"
export const trust_b = "trust-of-project-b"

const share = (id: ShareId, project_id: ProjectId): Share => ({
  id,
  project_id,
  name: "A share",
  size_bytes: 1000,
  status: "available",
  snapshot_support: true,
  mount_snapshot_support: true,
  create_share_from_snapshot_support: true,
})

/** The state and behavior of the other services. */
export class World extends Context.Service<
  World,
  {
    shares: Array<Share>
    /** Project and user of each trust, by id. */
    trusts: Map<string, { project_id: ProjectId; user_id: string }>
    secrets: Map<string, string>
    /** The check that fails for every bucket. */
    failing: PreflightCheck | undefined
    /** Names of unreachable services. */
    readonly down: Set<"shares" | "identity" | "vault" | "compute">
    images: Map<string, boolean>
    /** The reason that the conductor does not work. */
    conductor: string | undefined
    /** Preflights that ran, each with the keys that it received. */
    readonly preflights: Array<string>
  }
>()("test/World") {
  static readonly layer = Layer.sync(this, () => ({
    shares: [share(share_a, project_a), share(share_a2, project_a), share(share_b, project_b)],
    trusts: new Map([
      [trust_a, { project_id: project_a, user_id: "user-a" }],
      [trust_b, { project_id: project_b, user_id: "user-b" }],
    ]),
    secrets: new Map([
      [secretRef(1), "access"],
      [secretRef(2), "secret"],
      [secretRef(4), "access-2"],
      [secretRef(5), "secret-2"],
    ]),
    failing: undefined,
    down: new Set<"shares" | "identity" | "vault" | "compute">(),
    images: new Map([
      ["worker-1", true],
      ["worker-2", true],
      ["plain", false],
    ]),
    conductor: undefined,
    preflights: [],
  }))
}

const shares = Layer.effect(
  Shares,
  Effect.map(World, (world) => {
    const gone = new BackendUnavailable({ detail: "The share service is down." })
    const unlessDown = <A>(effect: Effect.Effect<A>) =>
      Effect.suspend(() => (world.down.has("shares") ? Effect.fail(gone) : effect))
    const unused = Effect.die(new Error("No request asks for this."))
    const isOf = (project_id: string, share_id: string) => (share: Share) =>
      share.id === share_id && share.project_id === project_id
    return Shares.of({
      find: (project_id, share_id) =>
        unlessDown(Effect.sync(() => world.shares.find(isOf(project_id, share_id)))),
      list: Stream.unwrap(
        unlessDown(Effect.sync(() => Stream.fromIterable([...world.shares].reverse()))),
      ),
      prepare: () => unused,
      release: () => unused,
      create: () => unused,
      finish: () => unused,
      pathOf: () => unused,
    })
  }),
)

const trusts = Layer.effect(
  Trusts,
  Effect.map(World, (world) => {
    const found = Effect.fnUntraced(function* (trust_id: string) {
      if (world.down.has("identity")) {
        return yield* new BackendUnavailable({ detail: "The identity service is down." })
      }
      const trust = world.trusts.get(trust_id)
      return trust ?? (yield* new TrustAccessDenied({ detail: denials.gone }))
    })
    return Trusts.of({
      verify: (trust_id, { project_id, user_id }) =>
        Effect.flatMap(found(trust_id), (trust) => {
          const is_fit =
            trust.project_id === project_id && (user_id === null || trust.user_id === user_id)
          return is_fit
            ? Effect.void
            : Effect.fail(new TrustAccessDenied({ detail: denials.foreign }))
        }),
      redeem: (trust_id) =>
        Effect.map(found(trust_id), ({ project_id }) => ({
          project_id,
          token: Redacted.make(`token of ${trust_id}`),
        })),
      service: Effect.succeed({
        service_user: { id: "user-svc", name: "almanac" },
        worker_project: { id: "project-workers", name: "workers" },
      }),
    })
  }),
)

const vault = Layer.effect(
  Vault,
  Effect.map(World, (world) =>
    Vault.of({
      read: Effect.fnUntraced(function* (_, href) {
        if (world.down.has("vault")) {
          return yield* new BackendUnavailable({ detail: "The vault is down." })
        }
        const payload = world.secrets.get(href)
        if (payload === undefined) return yield* new TrustAccessDenied({ detail: secret_denied })
        return Redacted.make(payload)
      }),
      find: () => Effect.die(new Error("No request looks for a secret.")),
      store: () => Effect.die(new Error("No request stores a secret.")),
      remove: () => Effect.die(new Error("No request removes a secret.")),
    }),
  ),
)

export const capabilities: Capabilities = {
  object_lock: true,
  versioning: true,
  lifecycle: true,
  addressing_mode: "path",
  checked_at: "2026-11-20T12:00:00.000Z",
}

const buckets = Layer.effect(
  Buckets,
  Effect.map(World, (world) => {
    const unused = Effect.die(new Error("No request asks for this."))
    return Buckets.of({
      preflight: ({ bucket, access_key, secret_key }, { shape }) =>
        Effect.suspend(() => {
          const keys = `${Redacted.value(access_key)}/${Redacted.value(secret_key)}`
          world.preflights.push(`${shape} ${bucket} ${keys}`)
          if (world.failing === undefined) return Effect.succeed(capabilities)
          const detail = preflightDetail(world.failing, "it did not hold.")
          return Effect.fail(new TargetPreflightFailed({ detail }))
        }),
      reach: () => unused,
      usage: () => unused,
      protectedUntil: () => unused,
      extendLocks: () => unused,
      retention: () => unused,
      purge: () => unused,
      recoverableUntil: () => unused,
      undelete: () => unused,
    })
  }),
)

const images = Layer.effect(
  Images,
  Effect.map(World, (world) =>
    Images.of({
      image: (name) =>
        Effect.suspend(() => {
          if (world.down.has("compute")) {
            return Effect.fail(new BackendUnavailable({ detail: "The compute service is down." }))
          }
          const svc_worker_image = world.images.get(name)
          if (svc_worker_image === undefined) return Effect.succeed(undefined)
          return Effect.succeed({
            name,
            properties: { svc_worker_image, engine_version: "0.18.0" },
          })
        }),
    }),
  ),
)

/** Ports that always exist, and adapters that an installation may lack. */
export const ports = Layer.mergeAll(shares, trusts, vault).pipe(Layer.provideMerge(World.layer))
export const adapters = Layer.mergeAll(buckets, images)
