/**
 * What share protection has outside of this process: the engine, the buckets, and the machines of
 * workers. Each may be missing: then what needs it says so.
 */
import { rm } from "node:fs/promises"
import { join } from "node:path"
import { Context, Effect, Layer, Option, Result, Schema } from "effect"
import { type Boot, Compute, Images } from "#actors/share-protection/ports/compute.ts"
import { Engine } from "#actors/share-protection/ports/engine.ts"
import { KeystoneSession } from "#adapters/keystone/session.ts"
import { keepDefaultImage } from "#adapters/share-protection/compute-images.ts"
import { computeLocal } from "#adapters/share-protection/compute-local.ts"
import { computeNova } from "#adapters/share-protection/compute-nova.ts"
import { imagesNats } from "#adapters/share-protection/images-nats.ts"
import { NatsConnection, NatsServer } from "#bus"
import type { Settings } from "#schemas/settings.ts"
import { AgentPapers } from "#server/agent/papers.ts"
import { buckets, engine, engineFolders } from "#server/agent/ports.ts"
import type { SettingsSources } from "#server/program.ts"
import { programBeside } from "#server/program-beside.ts"
import { reviveWorkers } from "#server/share-protection/worker-revival.ts"

export interface Outside {
  /** Engine, Buckets, Compute and Images, as far as there are any. */
  readonly services: Context.Context<never>
  /** Why jobs stay queued; undefined when they do not. */
  readonly jobs: string | undefined
  /** Tells the workers of this machine that it is time to go; it answers before they have. */
  readonly farewell: Effect.Effect<void>
}

/** The folder of this program. */
const home = join(import.meta.dirname, "../..")

const agent_program = programBeside("agent/agent-process")

/**
 * An agent is a process of its own that loads nothing of the server. The new objects of a process
 * that mostly waits need no more than 1 MB: that is a fifth of its memory.
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
  // What a worker that was killed had restored to prove it is a tenant's, and nobody's any more.
  const { scratch_dir } = engineFolders({ data })
  yield* Effect.promise(() => rm(scratch_dir, { recursive: true, force: true }))
  // A folder that somebody else keeps is left as it is.
  if (images_dir === join(data.dir, "images")) {
    yield* Effect.catch(keepDefaultImage(images_dir, engine_version), ({ message }) =>
      Effect.logWarning(`The default image cannot be made: ${message}`),
    )
  }
  return yield* computeLocal({
    images_dir,
    max_machines,
    users,
    agent: {
      program: process.execPath,
      args: agent_args,
      // One heap of the C library instead of one for each core: 5 MB less for who mostly waits.
      environment: { ...process.env, MALLOC_ARENA_MAX: "1" },
      papers: ({ image, ...who }: Boot, seed) =>
        Schema.encodeSync(AgentPapers)({
          ...who,
          image_version: image,
          nats: { servers, seed },
          sources,
        }),
    },
  })
})

/** Machines that this process boots, of the cloud or of its own; undefined where it boots none. */
const machines = Effect.fnUntraced(function* (
  settings: Settings,
  sources: SettingsSources,
  engine_version: string | undefined,
) {
  const { compute, roles } = settings
  const session = yield* Effect.serviceOption(KeystoneSession)
  if (compute.kind === "nova" && Option.isSome(session)) {
    return { compute: yield* computeNova(session.value, settings), farewell: Effect.void }
  }
  const is_here = roles.includes("conductor") && roles.includes("agent")
  if (compute.kind !== "local" || !is_here || engine_version === undefined) return undefined
  const local = yield* localMachines(settings, engine_version, sources)
  // With a bus of our own nobody else has machines, and those of an earlier run went with it.
  if (settings.nats.url === "") {
    yield* reviveWorkers(local.compute).pipe(
      Effect.catch(({ detail }) => Effect.logWarning(`No worker is revived: ${detail}`)),
      Effect.forkScoped,
    )
  }
  return local
})

/** What there is, until the scope closes. The engine is asked for by who conducts alone. */
export const outside = Effect.fnUntraced(function* (settings: Settings, sources: SettingsSources) {
  const { connection } = yield* NatsConnection
  // Where no machines are booted here, whoever conducts is asked.
  const s3 = yield* Layer.build(Layer.merge(buckets(settings), imagesNats(connection)))
  const none: Outside = { services: s3, jobs: undefined, farewell: Effect.void }
  const conducts = settings.roles.includes("conductor")
  const built = conducts ? yield* Effect.result(Layer.build(engine(settings))) : undefined
  if (built !== undefined && Result.isFailure(built)) {
    return { ...none, jobs: `jobs stay queued: ${built.failure.message}` }
  }
  const services = built === undefined ? s3 : Context.merge(s3, built.success)
  const version = built && Context.get(built.success, Engine).version
  const found = yield* machines(settings, sources, version)
  if (found === undefined) return { ...none, services }
  const { compute, farewell } = found
  const booted = Context.add(services, Compute, compute).pipe(Context.add(Images, compute))
  return { ...none, services: booted, farewell }
})
