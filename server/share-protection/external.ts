/**
 * Share protection's external dependencies: the engine, the buckets, and the machines of workers.
 * Each may be missing; operations that need it then report that.
 */
import { rm } from "node:fs/promises"
import { join } from "node:path"
import { Context, Effect, Layer, Option, Result, Schema } from "effect"
import { type Boot, Compute, Images } from "#actors/share-protection/ports/compute.ts"
import { Engine } from "#actors/share-protection/ports/engine.ts"
import { KeystoneSession } from "#adapters/keystone/session.ts"
import { ensureDefaultImage } from "#adapters/share-protection/compute-images.ts"
import { computeLocal } from "#adapters/share-protection/compute-local.ts"
import { computeNova } from "#adapters/share-protection/compute-nova.ts"
import { imagesNats } from "#adapters/share-protection/images-nats.ts"
import { NatsConnection, NatsServer } from "#bus"
import type { Settings } from "#schemas/settings.ts"
import { AgentCredentials } from "#server/agent/credentials.ts"
import { buckets, engine, engineFolders } from "#server/agent/ports.ts"
import { entryFile } from "#server/entry-file.ts"
import type { SettingsSources } from "#server/program.ts"
import { reviveWorkers } from "#server/share-protection/worker-revival.ts"

export interface Outside {
  /** Engine, Buckets, Compute and Images, as far as they are available. */
  readonly services: Context.Context<never>
  /** Why jobs stay queued; undefined if they do not. */
  readonly jobs: string | undefined
  /** Signals this machine's workers to stop, without waiting for them. */
  readonly shutdown: Effect.Effect<void>
}

/** The program's root folder. */
const home = join(import.meta.dirname, "../..")

const agent_program = entryFile("agent/agent-process")

/**
 * An agent is a separate process that loads none of the server's code. A young generation of 1 MB
 * is enough for a mostly idle process, and saves a fifth of its memory.
 */
const agent_args = [
  "--max-semi-space-size=1",
  "--import",
  join(home, "launcher/compile-cache.mjs"),
  agent_program,
]

const localMachines = Effect.fnUntraced(function* (
  { compute: { images_dir, max_machines }, data }: Settings,
  engine_version: string,
  sources: SettingsSources,
) {
  const { servers, users } = yield* NatsServer
  // A killed worker may have left a tenant's files from a restore test, which no job uses now.
  const { scratch_dir } = engineFolders({ data })
  yield* Effect.promise(() => rm(scratch_dir, { recursive: true, force: true }))
  // Do not change a folder that the operator manages.
  if (images_dir === join(data.dir, "images")) {
    yield* Effect.catch(ensureDefaultImage(images_dir, engine_version), ({ message }) =>
      Effect.logWarning(`The default worker image cannot be created: ${message}`),
    )
  }
  return yield* computeLocal({
    images_dir,
    max_machines,
    users,
    agent: {
      program: process.execPath,
      args: agent_args,
      // One malloc arena instead of one per core saves 5 MB in a mostly idle process.
      environment: { ...process.env, MALLOC_ARENA_MAX: "1" },
      credentials: ({ image, ...who }: Boot, seed) =>
        Schema.encodeSync(AgentCredentials)({
          ...who,
          image_version: image,
          nats: { servers, seed },
          sources,
        }),
    },
  })
})

/** Compute of the cloud or of this machine; undefined if this process boots no machines. */
const machines = Effect.fnUntraced(function* (
  settings: Settings,
  sources: SettingsSources,
  engine_version: string | undefined,
) {
  const { compute, roles } = settings
  const session = yield* Effect.serviceOption(KeystoneSession)
  if (compute.kind === "nova" && Option.isSome(session)) {
    return { compute: yield* computeNova(session.value, settings), shutdown: Effect.void }
  }
  const is_here = roles.includes("conductor") && roles.includes("agent")
  if (compute.kind !== "local" || !is_here || engine_version === undefined) return undefined
  const local = yield* localMachines(settings, engine_version, sources)
  // With an embedded bus, no other process runs machines, and those of an earlier run have ended.
  if (settings.nats.url === "") {
    yield* reviveWorkers(local.compute).pipe(
      Effect.catch(({ detail }) =>
        Effect.logWarning(`Stopped workers cannot be restarted: ${detail}`),
      ),
      Effect.forkScoped,
    )
  }
  return local
})

/** The available dependencies, until the scope closes. Only a conductor needs the engine. */
export const externalServices = Effect.fnUntraced(function* (
  settings: Settings,
  sources: SettingsSources,
) {
  const { connection } = yield* NatsConnection
  // If this process boots no machines, it requests images from the conductor.
  const s3 = yield* Layer.build(Layer.merge(buckets(settings), imagesNats(connection)))
  const none: Outside = { services: s3, jobs: undefined, shutdown: Effect.void }
  const conducts = settings.roles.includes("conductor")
  const built = conducts ? yield* Effect.result(Layer.build(engine(settings))) : undefined
  if (built !== undefined && Result.isFailure(built)) {
    return { ...none, jobs: `jobs stay queued: ${built.failure.message}` }
  }
  const services = built === undefined ? s3 : Context.merge(s3, built.success)
  const version = built && Context.get(built.success, Engine).version
  const found = yield* machines(settings, sources, version)
  if (found === undefined) return { ...none, services }
  const { compute, shutdown } = found
  const booted = Context.add(services, Compute, compute).pipe(Context.add(Images, compute))
  return { ...none, services: booted, shutdown }
})
