/**
 * The dependencies of a worker's agent in a simulation: the engine, buckets, trusts, the vault and
 * shares.
 *
 * The engine enforces physical laws: it observes every writer of a repository, and checks that no
 * snapshot is removed that a backup still needs.
 */
import { Effect, Exit, Redacted, Stream } from "effect"
import type { Buckets } from "#actors/share-protection/ports/buckets.ts"
import {
  type Engine,
  EngineFailed,
  type EngineFailure,
  type Repository,
} from "#actors/share-protection/ports/engine.ts"
import type { Share, Shares } from "#actors/share-protection/ports/shares.ts"
import type { Trusts } from "#actors/share-protection/ports/trusts.ts"
import type { Vault } from "#actors/share-protection/ports/vault.ts"
import { type ProjectId, ShareId } from "#schemas/share-protection/id.ts"
import type { LeaseMode } from "#schemas/share-protection/lease.ts"
import {
  BackendUnavailable,
  RepositoryLocked,
  TargetPreflightFailed,
  TrustAccessDenied,
} from "#schemas/share-protection/rejection.ts"
import { uuid } from "../samples.ts"
import {
  happens,
  isCut,
  law,
  type Machine,
  onMachine,
  pause,
  type SimulatedRepository,
  type World,
} from "./world.ts"

const minute_ms = 60_000

const repositoryOf = ({ repositories }: World, bucket: string) => {
  const known = repositories.get(bucket)
  const repository: SimulatedRepository = known ?? {
    format: 0,
    snapshots: new Map(),
    forgotten: new Map(),
    calls: new Set(),
  }
  repositories.set(bucket, repository)
  return repository
}

/**
 * Whether the lease currently permits the machine to access the bucket's repository in this mode.
 */
const isHeld = ({ records }: World, bucket: string, { worker_id }: Machine, mode: LeaseMode) =>
  [...records.targets].some(
    ([target_id, target]) =>
      target.bucket === bucket &&
      [...(records.leases.get(target_id)?.holds.values() ?? [])].some(
        (hold) => hold.worker_id === worker_id && hold.mode === mode,
      ),
  )

const fails = (detail: string, wrote_nothing = false) => new EngineFailed({ detail, wrote_nothing })

/** Runs the engine on a machine, under the laws of the repository. */
const running = <A>(
  world: World,
  machine: Machine,
  { bucket }: Repository,
  mode: LeaseMode,
  work: (repository: SimulatedRepository) => Effect.Effect<A, EngineFailure>,
): Effect.Effect<A, EngineFailure> => {
  const repository = repositoryOf(world, bucket)
  const begin = Effect.sync(() => {
    const others = [...repository.calls].map((call) => call.mode)
    const writers = others.filter((other) => other !== "read").length
    const is_alone = mode === "read" ? !others.includes("exclusive") : writers === 0
    const who = `${machine.worker_id} (${mode}) in ${bucket}`
    law(world)(is_alone, `no two engines write into one repository: ${who}`)
    law(world)(mode !== "exclusive" || others.length === 0, "an engine that is alone is alone")
    law(world)(isHeld(world, bucket, machine, mode), `an engine runs under its lease: ${who}`)
    const call = { machine, mode }
    repository.calls.add(call)
    return call
  })
  const mishap = Effect.suspend((): Effect.Effect<void, EngineFailure> => {
    if (happens(world, "the engine fails before", 0.06)) return Effect.fail(fails("No.", true))
    if (happens(world, "the engine is locked", 0.02)) {
      return Effect.fail(new RepositoryLocked({ detail: "Locked." }))
    }
    return happens(world, "the engine hangs", 0.02) ? Effect.never : Effect.void
  })
  const ran = Effect.acquireUseRelease(
    begin,
    () => Effect.andThen(mishap, onMachine(machine, work(repository))),
    (call, exit) =>
      // The engine takes some time to stop.
      (Exit.hasInterrupts(exit) ? pause(world, 100, 5_000) : Effect.void).pipe(
        Effect.andThen(Effect.sync(() => repository.calls.delete(call))),
      ),
  )
  return onMachine(machine, ran)
}

/** Works for a while on a machine, if it stays alive. */
const working = (world: World, machine: Machine, max_ms: number) =>
  Effect.andThen(pause(world, 1_000, max_ms), onMachine(machine, Effect.void))

export const engineOf = (world: World, machine: Machine): Engine["Service"] => ({
  version: "0.18.0",
  is_fips: false,
  ...transfersOf(world, machine),
  ...upkeepOf(world, machine),
  snapshots: ({ bucket }) =>
    onMachine(
      machine,
      Effect.map(pause(world, 10, 1_000), () =>
        [...repositoryOf(world, bucket).snapshots].map(([engine_snapshot_id, snapshot]) => ({
          engine_snapshot_id,
          ...snapshot,
          host: "",
          bytes: 2,
          stored_bytes: 1,
          files: 1,
        })),
      ),
    ),
})

const transfersOf = (
  world: World,
  machine: Machine,
): Pick<Engine["Service"], "backup" | "restore" | "plan" | "prove"> => ({
  backup: (repository, { tags }, onProgress) =>
    running(world, machine, repository, "write", ({ snapshots }) =>
      Effect.gen(function* () {
        const taken_at = new Date(world.time.now()).toISOString()
        yield* working(world, machine, minute_ms)
        yield* onProgress({ percent: 50, bytes_done: 1, bytes_total: 2 })
        yield* working(world, machine, minute_ms)
        const engine_snapshot_id = `s${world.random.between(0, 2 ** 40).toString(36)}`
        snapshots.set(engine_snapshot_id, { tags, taken_at })
        if (happens(world, "the engine fails after", 0.06)) return yield* fails("Too late.")
        const made = { partial: false, unread: [], bytes: 2, stored_bytes: 1, files: 1 }
        return { engine_snapshot_id, taken_at, ...made }
      }),
    ),
  restore: (repository, { engine_snapshot_id }) =>
    running(world, machine, repository, "read", ({ snapshots }) =>
      Effect.gen(function* () {
        yield* working(world, machine, 2 * minute_ms)
        if (!snapshots.has(engine_snapshot_id)) return yield* fails("No such snapshot.")
        return { files: 1, bytes: 2 }
      }),
    ),
  plan: (repository, { engine_snapshot_id }) =>
    running(world, machine, repository, "read", ({ snapshots }) =>
      Effect.gen(function* () {
        yield* working(world, machine, minute_ms)
        if (!snapshots.has(engine_snapshot_id)) return yield* fails("No such snapshot.")
        const counts = { created: 0, updated: 0, deleted: 0, unchanged: 1 }
        // The share's content sometimes changes.
        return { hash: world.random.pick(["a", "b"]).repeat(64), ...counts, actions: [] }
      }),
    ),
  prove: (repository, { engine_snapshot_id }) =>
    running(world, machine, repository, "read", ({ snapshots }) =>
      Effect.gen(function* () {
        yield* working(world, machine, minute_ms)
        law(world)(snapshots.has(engine_snapshot_id), "a backup that is tested has its snapshot")
        return { files: 1, bytes: 2 }
      }),
    ),
})

const upkeepOf = (
  world: World,
  machine: Machine,
): Pick<Engine["Service"], "init" | "forget" | "maintain" | "upgrade" | "unlock"> => ({
  init: (repository) =>
    running(world, machine, repository, "exclusive", (stored) =>
      Effect.map(working(world, machine, minute_ms), () => {
        stored.format ||= world.random.between(1, 2)
        return { format: stored.format, profile: "simulated" }
      }),
    ),
  forget: (repository, ids) => {
    // A backup's own worker removes the snapshot that it made once it is no longer wanted.
    const is_its_own = isHeld(world, repository.bucket, machine, "write")
    const mode = is_its_own ? "write" : "exclusive"
    return running(world, machine, repository, mode, ({ snapshots, forgotten }) =>
      Effect.map(working(world, machine, minute_ms), () => {
        for (const id of ids) {
          law(world)(!isNeeded(world, id), "no snapshot is forgotten that a backup needs")
          const snapshot = snapshots.get(id)
          // Some snapshots are lost permanently.
          if (snapshot !== undefined && world.random.next() < 0.7) forgotten.set(id, snapshot)
          snapshots.delete(id)
        }
      }),
    )
  },
  maintain: (repository) =>
    running(world, machine, repository, "exclusive", () => working(world, machine, 2 * minute_ms)),
  upgrade: (repository) =>
    running(world, machine, repository, "exclusive", (stored) =>
      Effect.map(working(world, machine, minute_ms), () => {
        stored.format = 2
        return { to_format: 2 }
      }),
    ),
  unlock: () => Effect.void,
})

const isNeeded = ({ records }: World, snapshot_id: string) =>
  [...records.backups.values()].some(
    ({ status, engine_snapshot_id }) =>
      status === "available" && engine_snapshot_id === snapshot_id,
  )

/** The response of a service to a machine, or an error that it is unreachable. */
const sendRequest = <A, E>(
  world: World,
  machine: Machine,
  service: string,
  answer: () => Effect.Effect<A, E>,
) =>
  onMachine(
    machine,
    Effect.andThen(
      pause(world, 1, 500),
      Effect.suspend((): Effect.Effect<A, E | BackendUnavailable> => {
        const is_down = isCut(world, machine) || happens(world, `${service} is down`, 0.01)
        return is_down ? Effect.fail(new BackendUnavailable({ detail: service })) : answer()
      }),
    ),
  )

const capabilities = (addressing_mode: "path" | "virtual", checked_at: string) => ({
  object_lock: true,
  versioning: true,
  lifecycle: true,
  addressing_mode,
  checked_at,
})

export const bucketsOf = (world: World, machine: Machine): Buckets["Service"] => {
  const now = () => new Date(world.time.now()).toISOString()
  return {
    preflight: ({ addressing_mode }) =>
      Effect.suspend(() =>
        happens(world, "a preflight fails", 0.1)
          ? Effect.fail(new TargetPreflightFailed({ detail: "object_lock: none" }))
          : Effect.succeed(capabilities(addressing_mode, now())),
      ),
    reach: () => sendRequest(world, machine, "s3", () => Effect.void),
    usage: () =>
      sendRequest(world, machine, "s3", () =>
        Effect.succeed({ stored_bytes: 1, noncurrent_bytes: 0, objects: 1, measured_at: now() }),
      ),
    protectedUntil: () =>
      sendRequest(world, machine, "s3", () =>
        Effect.succeed(
          world.random.between(0, 3) > 0
            ? null
            : new Date(world.time.now() + 5 * minute_ms).toISOString(),
        ),
      ),
    extendLocks: () => sendRequest(world, machine, "s3", () => Effect.void),
    retention: () =>
      sendRequest(world, machine, "s3", () =>
        Effect.succeed(world.random.between(0, 3) > 0 ? null : 300),
      ),
    purge: () => sendRequest(world, machine, "s3", () => Effect.succeed(0)),
    recoverableUntil: () => Effect.succeed(null),
    undelete: ({ bucket }, id) =>
      sendRequest(world, machine, "s3", () =>
        Effect.sync(() => {
          const { snapshots, forgotten } = repositoryOf(world, bucket)
          const is_alone = isHeld(world, bucket, machine, "exclusive")
          law(world)(is_alone, "a snapshot comes back under the lease of its repository")
          // The snapshot's object lock has expired, and the snapshot is gone.
          if (happens(world, "a snapshot is gone for good", 0.4)) forgotten.delete(id)
          const snapshot = forgotten.get(id)
          if (snapshot !== undefined) snapshots.set(id, snapshot)
          return snapshots.has(id)
        }),
      ),
  }
}

export const trustsOf = (world: World, machine: Machine): Trusts["Service"] => ({
  verify: () => Effect.void,
  redeem: (trust_id) =>
    sendRequest(world, machine, "identity", () =>
      happens(world, "a trust is revoked", 0.01)
        ? Effect.fail(new TrustAccessDenied({ detail: "Revoked." }))
        : Effect.succeed({
            // A simulated trust has the name of its project.
            project_id: trust_id as ProjectId,
            token: Redacted.make("token"),
          }),
    ),
  service: Effect.succeed({
    service_user: { id: "service", name: "service" },
    worker_project: { id: "workers", name: "workers" },
  }),
})

export const vaultOf = (world: World, machine: Machine): Vault["Service"] => ({
  read: (_, href) =>
    sendRequest(world, machine, "vault", () =>
      Effect.succeed(Redacted.make(world.secrets.get(href) ?? "secret")),
    ),
  store: (_, { name, payload }) =>
    sendRequest(world, machine, "vault", () =>
      Effect.sync(() => {
        const href = `http://vault:9311/v1/secrets/${uuid(2000 + world.secrets.size)}`
        world.secrets.set(href, Redacted.value(payload))
        world.secret_names.set(name, href)
        return href
      }),
    ),
  find: (_, name) =>
    sendRequest(world, machine, "vault", () => Effect.succeed(world.secret_names.get(name))),
  remove: () => Effect.void,
})

/** A share of a project; every share exists. */
export const shareOf = (project_id: ProjectId, id: ShareId): Share => ({
  id,
  project_id,
  name: id,
  size_bytes: 2,
  status: "available",
  snapshot_support: true,
  mount_snapshot_support: true,
  create_share_from_snapshot_support: true,
})

export const sharesOf = (world: World, machine: Machine): Shares["Service"] => ({
  find: (project_id, share_id) =>
    sendRequest(world, machine, "shares", () =>
      Effect.succeed(
        happens(world, "a share is gone", 0.005) ? undefined : shareOf(project_id, share_id),
      ),
    ),
  list: Stream.empty,
  prepare: (share, { job_id }) =>
    sendRequest(world, machine, "shares", () =>
      Effect.sync(() => {
        world.prepared.set(job_id, machine)
        return { path: `/shares/${share.id}`, crash_consistent: true, token: job_id }
      }),
    ),
  release: ({ token }) =>
    sendRequest(world, machine, "shares", () => Effect.sync(() => world.prepared.delete(token))),
  create: (project_id, { job_id }) =>
    sendRequest(world, machine, "shares", () =>
      Effect.succeed({ share: shareOf(project_id, ShareId.make(job_id)), path: "/shares/new" }),
    ),
  finish: () => sendRequest(world, machine, "shares", () => Effect.void),
  pathOf: ({ id }) => sendRequest(world, machine, "shares", () => Effect.succeed(`/shares/${id}`)),
})
