/** What every process stands on, whatever its roles: the log, who writes it, leases, events. */
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
import { lease_ttl_ms, leases_bucket } from "#server/leased.ts"
import { publishing } from "#server/published.ts"
import { databases } from "#server/read-models.ts"
import { exclusive } from "#server/session.ts"

/** Commands of whichever process has the actors. */
const remote = Layer.unwrap(
  Effect.map(NatsConnection, ({ connection }) => remoteCommands(connection)),
)

/** Leases of all processes of a deployment, held by this one as `holder`. */
export const leasesOf = ({ nats }: Settings, holder: string) =>
  leasesJetStream({
    bucket: leases_bucket,
    holder,
    ttl_ms: lease_ttl_ms,
    replicas: nats.replicas,
  })

/** Leases of this node, which makes its id at the first start: in the folder that it has locked. */
const ownLeases = (settings: Settings) =>
  Layer.unwrap(
    Effect.map(nodeId(settings.cluster.node_id, settings.data.dir), (node_id) =>
      leasesOf(settings, node_id),
    ),
  )

/** How much of the published events their stream keeps. */
export const retentionOf = ({ events }: Settings) => ({
  bytes: events.retention_bytes,
  days: events.retention_days,
})

/** Space for a start on a full disk. */
const reserving = ({ data }: Settings) =>
  Layer.effectDiscard(Effect.forkScoped(keepReserve(data.dir)))

/** The bus and all that is over it; `meanwhile` is done while that starts. */
export const machinery = (settings: Settings, meanwhile: Layer.Layer<never>) =>
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
    reserving(settings),
  ).pipe(Layer.provideMerge(exclusive(settings, meanwhile)))

/** The bus to the workers, over which they are asked and heard. */
export const workerBus = ({ worker }: Settings) =>
  Layer.unwrap(
    Effect.map(NatsConnection, ({ connection }) =>
      Layer.merge(agentsNats(connection, worker), liveWorkersNats(connection)),
    ),
  )
