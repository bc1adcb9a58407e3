/** The infrastructure of every process: the log, commands, leases and published events. */
import { Effect, Layer } from "effect"
import { commandPath } from "#actors/health/command-path.ts"
import { host } from "#actors/host.ts"
import { nodeId } from "#adapters/blob-storage/node.ts"
import { remoteCommands } from "#adapters/bus/commands.ts"
import { keepReserve } from "#adapters/data-folder/reserve.ts"
import { subscribersJetStream } from "#adapters/health/subscribers-jetstream.ts"
import { leasesJetStream } from "#adapters/leases/jetstream.ts"
import { publishedEventsJetStream } from "#adapters/published/jetstream.ts"
import { agentsNats } from "#adapters/share-protection/agents-nats.ts"
import { liveWorkersNats } from "#adapters/share-protection/live-workers-nats.ts"
import { NatsConnection } from "#bus"
import { PublishedHistory } from "#projections/published/history.ts"
import type { Settings } from "#schemas/settings.ts"
import { lease_ttl_ms, leases_bucket } from "#server/lease.ts"
import { publishing } from "#server/published.ts"
import { databases } from "#server/read-models.ts"
import { exclusive } from "#server/session.ts"

/** Commands that a process with the role `actors` executes. */
const remote = Layer.unwrap(
  Effect.map(NatsConnection, ({ connection }) => remoteCommands(connection)),
)

/** Leases of the deployment; this process holds them as `holder`. */
export const leasesOf = ({ nats }: Settings, holder: string) =>
  leasesJetStream({
    bucket: leases_bucket,
    holder,
    ttl_ms: lease_ttl_ms,
    replicas: nats.replicas,
  })

/** Leases of this node, whose id is created in the locked data folder on the first startup. */
const ownLeases = (settings: Settings) =>
  Layer.unwrap(
    Effect.map(nodeId(settings.cluster.node_id, settings.data.dir), (node_id) =>
      leasesOf(settings, node_id),
    ),
  )

/** Retention of the published events' stream. */
export const retentionOf = ({ events }: Settings) => ({
  bytes: events.retention_bytes,
  days: events.retention_days,
})

/** Reserves space for a startup on a full disk. */
const reserveSpace = ({ data }: Settings) =>
  Layer.effectDiscard(Effect.forkScoped(keepReserve(data.dir)))

/** The bus and everything on top of it; `meanwhile` runs while the bus starts. */
export const infrastructure = (settings: Settings, meanwhile: Layer.Layer<never>) =>
  Layer.mergeAll(
    settings.roles.includes("actors")
      ? Layer.provide(commandPath, host)
      : Layer.provide(commandPath, remote),
    PublishedHistory.layer(publishing).pipe(
      Layer.provideMerge(publishedEventsJetStream(settings.nats.replicas, retentionOf(settings))),
    ),
    ownLeases(settings),
    subscribersJetStream,
    databases(settings),
    reserveSpace(settings),
  ).pipe(Layer.provideMerge(exclusive(settings, meanwhile)))

/** Requests to workers, and their heartbeats, over the bus. */
export const workerBus = ({ worker }: Settings) =>
  Layer.unwrap(
    Effect.map(NatsConnection, ({ connection }) =>
      Layer.merge(agentsNats(connection, worker), liveWorkersNats(connection)),
    ),
  )
