/**
 * Parts that several roles of a process share. Each is created on first use, or never.
 * Source: decision 0140.
 */
import { mkdir } from "node:fs/promises"
import { dirname, join } from "node:path"
import { Effect, Layer } from "effect"
import { natsLiveNodes } from "#adapters/blob-storage/nats-live-nodes.ts"
import { sqliteLiveNodes } from "#adapters/blob-storage/sqlite-live-nodes.ts"
import { threadRest } from "#adapters/thread-share.ts"
import { busAvailability, NatsConnection } from "#bus"
import { BlobStorageModel } from "#projections/blob-storage/blueprint.ts"
import { Rest } from "#projections/read-model.ts"
import { ShareProtectionModel } from "#projections/share-protection/blueprint.ts"
import { SystemModel } from "#projections/system/blueprint.ts"
import { WebhookModel } from "#projections/system/webhook-model.ts"
import type { Settings } from "#schemas/settings.ts"
import { details } from "#server/audit-details.ts"
import { commandProblem } from "#server/problems.ts"
import type { SettingsSources } from "#server/program.ts"
import { externalServices } from "#server/share-protection/external.ts"
import { webhookAdapters } from "#server/webhooks.ts"

const folder_mode = 0o700

/** Read models that several services or the system use. */
const models = ({ audit }: Settings) => {
  // Operators read it rarely, so requests take precedence over its indexing.
  const indexed = SystemModel.layer(details, audit.index).pipe(
    Layer.provide(Layer.sync(Rest, threadRest)),
  )
  return Layer.mergeAll(ShareProtectionModel.layer, WebhookModel.layer, indexed)
}

/** The last heartbeats of blob nodes, which survive a restart. */
const liveNodes = ({ data, cluster }: Settings) =>
  Layer.unwrap(
    Effect.gen(function* () {
      const file = join(data.dir, "read-models", "live.sqlite")
      yield* Effect.promise(() => mkdir(dirname(file), { recursive: true, mode: folder_mode }))
      return natsLiveNodes(cluster.name, yield* sqliteLiveNodes(file))
    }),
  )

/** The status of the bus. */
const bus = Effect.flatMap(NatsConnection, ({ connection }) => busAvailability(connection))

/** Why this process cannot commit commands. */
const commands = Effect.flatMap(bus, commandProblem)

/** Each part lives as long as the scope of its first user. */
export const roleParts = Effect.fnUntraced(function* (
  settings: Settings,
  sources: SettingsSources,
) {
  return {
    bus: yield* Effect.cached(bus),
    commands: yield* Effect.cached(commands),
    blobs: yield* Effect.cached(Layer.build(BlobStorageModel.layer)),
    models: yield* Effect.cached(Layer.build(models(settings))),
    hooks: yield* Effect.cached(Layer.build(webhookAdapters(settings))),
    live_nodes: yield* Effect.cached(Layer.build(liveNodes(settings))),
    outside: yield* Effect.cached(externalServices(settings, sources)),
  }
})

export type RoleParts = Effect.Success<ReturnType<typeof roleParts>>
