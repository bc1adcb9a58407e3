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
} from "#actors/blob-storage/live-nodes.ts"
import { NatsConnection } from "#adapters/nats-connection.ts"
import { NodeId, Uint64Digits } from "#schemas/blob-storage/node.ts"

const subject = "live.blob-storage.node"

/** The longest heartbeat is below 250 bytes; anything larger is not one. */
const bytes_max = 1024

const Said = Schema.fromJsonString(
  Schema.Struct({
    cluster: Schema.String,
    node_id: NodeId,
    used_bytes: Uint64Digits,
    blob_count: Uint64Digits,
  }),
)
const decode = Schema.decodeUnknownOption(Said)

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
          const { node_id, used_bytes, blob_count } = said.value
          return hear({ node_id, used_bytes: BigInt(used_bytes), blob_count: BigInt(blob_count) })
        }),
        // The subscription ends with the connection, and that with the process.
        Effect.ignore,
        Effect.forkScoped,
      )

      const tell = ({ node_id, used_bytes, blob_count }: Heartbeat) =>
        Effect.ignore(
          Effect.try({
            try: () => {
              const said = { used_bytes: `${used_bytes}`, blob_count: `${blob_count}` }
              const text = JSON.stringify({ cluster, node_id, ...said })
              connection.publish(`${subject}.${node_id}`, text)
            },
            catch: String,
          }),
        )
      // A process hears itself though the bus be gone.
      return { beat: (heartbeat) => Effect.andThen(hear(heartbeat), tell(heartbeat)), find }
    }),
  )
