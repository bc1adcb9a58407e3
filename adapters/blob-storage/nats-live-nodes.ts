/**
 * Live values of blob nodes over the bus: plain messages on `live.blob-storage.node.<node id>`,
 * which nobody keeps.
 */
import { Effect, Layer, Option, Schema, Stream } from "effect"
import {
  type Heartbeat,
  hearing,
  type LiveKeeper,
  LiveNodes,
} from "#actors/blob-storage/ports/live-nodes.ts"
import type { NodeProgress } from "#actors/blob-storage/ports/repair-progress.ts"
import { NatsConnection } from "#bus"
import { NodeId, Uint64Digits } from "#schemas/blob-storage/node.ts"

const subject = "live.blob-storage.node"

/** The longest heartbeat is below 500 bytes; anything larger is not one. */
const bytes_max = 1024

const Said = Schema.fromJsonString(
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
const decode = Schema.decodeUnknownOption(Said)

const progressOf = (said: NonNullable<(typeof Said.Type)["progress"]>): NodeProgress => ({
  pending_migrations: BigInt(said.pending_migrations),
  bytes_moved: BigInt(said.bytes_moved),
  repairs: BigInt(said.repairs),
  replication_failures: BigInt(said.replication_failures),
  under_replicated: BigInt(said.under_replicated),
})

const heartbeatOf = ({ node_id, used_bytes, blob_count, ...said }: typeof Said.Type) => ({
  node_id,
  used_bytes: BigInt(used_bytes),
  blob_count: BigInt(blob_count),
  ...(said.capacity_bytes !== undefined && { capacity_bytes: BigInt(said.capacity_bytes) }),
  ...(said.progress && { progress: progressOf(said.progress) }),
})

const digits = (_: string, value: unknown) => (typeof value === "bigint" ? `${value}` : value)

/** Hears every node of the cluster, through whichever process it speaks. */
export const natsLiveNodes = (cluster: string, keeper?: LiveKeeper) =>
  Layer.effect(
    LiveNodes,
    Effect.gen(function* () {
      const { connection } = yield* NatsConnection
      const { hear, find } = hearing(keeper)

      const messages = yield* Effect.acquireRelease(
        Effect.sync(() => connection.subscribe(`${subject}.*`)),
        (subscription) => Effect.sync(() => subscription.unsubscribe()),
      )
      yield* Stream.fromAsyncIterable(messages, String).pipe(
        Stream.runForEach((message) => {
          const said = message.data.length > bytes_max ? Option.none() : decode(message.string())
          if (Option.isNone(said) || said.value.cluster !== cluster) return Effect.void
          return hear(heartbeatOf(said.value))
        }),
        // The subscription ends with the connection, and that with the process.
        Effect.ignore,
        Effect.forkScoped,
      )

      const tell = ({ node_id, used_bytes, blob_count, ...rest }: Heartbeat) =>
        Effect.ignore(
          Effect.try({
            try: () => {
              const said = { used_bytes: `${used_bytes}`, blob_count: `${blob_count}` }
              const text = JSON.stringify({ cluster, node_id, ...said, ...rest }, digits)
              connection.publish(`${subject}.${node_id}`, text)
            },
            catch: String,
          }),
        )
      // A process hears itself though the bus be gone.
      return { beat: (heartbeat) => Effect.andThen(hear(heartbeat), tell(heartbeat)), find }
    }),
  )
