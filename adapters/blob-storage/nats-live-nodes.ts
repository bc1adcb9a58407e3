/**
 * Publishes and receives live values of blob nodes: plain NATS messages on
 * `live.blob-storage.node.<node id>`, which are not stored.
 */
import { Effect, Layer, Option, Schema, Stream } from "effect"
import {
  type Heartbeat,
  type HeartbeatStore,
  LiveNodes,
  makeLiveNodes,
} from "#actors/blob-storage/ports/live-nodes.ts"
import type { NodeProgress } from "#actors/blob-storage/ports/repair-progress.ts"
import { NatsConnection } from "#bus"
import { NodeId, Uint64Digits } from "#schemas/blob-storage/node.ts"

const subject = "live.blob-storage.node"

/** Maximum size of a message; heartbeats take less than 500 bytes. */
const bytes_max = 1024

const HeartbeatMessage = Schema.fromJsonString(
  Schema.Struct({
    cluster: Schema.String,
    node_id: NodeId,
    used_bytes: Uint64Digits,
    blob_count: Uint64Digits,
    capacity_bytes: Schema.optionalKey(Uint64Digits),
    progress: Schema.optionalKey(
      Schema.Struct({
        pending_migrations: Uint64Digits,
        bytes_moved: Uint64Digits,
        repairs: Uint64Digits,
        replication_failures: Uint64Digits,
        under_replicated: Uint64Digits,
      }),
    ),
  }),
)
const decode = Schema.decodeUnknownOption(HeartbeatMessage)

const progressOf = (
  progress: NonNullable<(typeof HeartbeatMessage.Type)["progress"]>,
): NodeProgress => ({
  pending_migrations: BigInt(progress.pending_migrations),
  bytes_moved: BigInt(progress.bytes_moved),
  repairs: BigInt(progress.repairs),
  replication_failures: BigInt(progress.replication_failures),
  under_replicated: BigInt(progress.under_replicated),
})

const heartbeatOf = ({
  node_id,
  used_bytes,
  blob_count,
  ...rest
}: typeof HeartbeatMessage.Type) => ({
  node_id,
  used_bytes: BigInt(used_bytes),
  blob_count: BigInt(blob_count),
  ...(rest.capacity_bytes !== undefined && { capacity_bytes: BigInt(rest.capacity_bytes) }),
  ...(rest.progress && { progress: progressOf(rest.progress) }),
})

const digits = (_: string, value: unknown) => (typeof value === "bigint" ? `${value}` : value)

/** Receives the heartbeats of every node of the cluster, from all processes. */
export const natsLiveNodes = (cluster: string, keeper?: HeartbeatStore) =>
  Layer.effect(
    LiveNodes,
    Effect.gen(function* () {
      const { connection } = yield* NatsConnection
      const { record, find } = makeLiveNodes(keeper)

      const messages = yield* Effect.acquireRelease(
        Effect.sync(() => connection.subscribe(`${subject}.*`)),
        (subscription) => Effect.sync(() => subscription.unsubscribe()),
      )
      yield* Stream.fromAsyncIterable(messages, String).pipe(
        Stream.runForEach((message) => {
          const decoded = message.data.length > bytes_max ? Option.none() : decode(message.string())
          if (Option.isNone(decoded) || decoded.value.cluster !== cluster) return Effect.void
          return record(heartbeatOf(decoded.value))
        }),
        // The subscription ends with the connection, and the connection with the process.
        Effect.ignore,
        Effect.forkScoped,
      )

      const send = ({ node_id, used_bytes, blob_count, ...rest }: Heartbeat) =>
        Effect.ignore(
          Effect.try({
            try: () => {
              const counts = { used_bytes: `${used_bytes}`, blob_count: `${blob_count}` }
              const text = JSON.stringify({ cluster, node_id, ...counts, ...rest }, digits)
              connection.publish(`${subject}.${node_id}`, text)
            },
            catch: String,
          }),
        )
      // A process records its own heartbeat even if the bus is down.
      return { publish: (heartbeat) => Effect.andThen(record(heartbeat), send(heartbeat)), find }
    }),
  )
