/**
 * Publishes and receives heartbeats of workers: plain NATS messages on
 * `live.share-protection.worker.<id>`, which are not stored. The server allows a worker's user to
 * publish only on its own subject.
 */
import type { NatsConnection, Subscription } from "@nats-io/transport-node"
import { Effect, Layer, Option, Schema, Stream } from "effect"
import {
  LiveWorkers,
  makeLiveWorkers,
  type WorkerHeartbeat,
} from "#actors/share-protection/ports/live-workers.ts"
import { heartbeatSubject } from "#adapters/share-protection/worker-users.ts"
import { JobId, WorkerId } from "#schemas/share-protection/id.ts"
import { capacity_slots_max } from "#schemas/share-protection/worker.ts"

/** Maximum size of a heartbeat: the progress of a job takes less than 200 bytes. */
const bytes_max = 1024 + 200 * capacity_slots_max

const Bytes = Schema.Int.check(Schema.isGreaterThanOrEqualTo(0))

const HeartbeatMessage = Schema.fromJsonString(
  Schema.Struct({
    worker_id: WorkerId,
    jobs: Schema.Array(
      Schema.Struct({
        job_id: JobId,
        progress: Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 100 })),
        bytes_done: Bytes,
        bytes_total: Bytes,
      }),
    ).check(Schema.isMaxLength(capacity_slots_max)),
  }),
)
const decode = Schema.decodeUnknownOption(HeartbeatMessage)

const publishing = (
  connection: NatsConnection,
  { record, find, progressOf }: ReturnType<typeof makeLiveWorkers>,
) =>
  LiveWorkers.of({
    publish: (heartbeat) => Effect.andThen(record(heartbeat), publish(connection, heartbeat)),
    find,
    progressOf,
  })

/** Publishes heartbeats. Receives none, because a worker's user may not subscribe. */
export const publishedLiveWorkers = (connection: NatsConnection) =>
  Layer.sync(LiveWorkers, () => publishing(connection, makeLiveWorkers()))

/** Receives every worker's heartbeats, and publishes those of this process. */
export const liveWorkersNats = (connection: NatsConnection) =>
  Layer.effect(
    LiveWorkers,
    Effect.gen(function* () {
      const workers = makeLiveWorkers()
      const messages = yield* Effect.acquireRelease(
        Effect.sync(() => connection.subscribe("live.share-protection.worker.*")),
        (subscription) => Effect.sync(() => subscription.unsubscribe()),
      )
      yield* recordHeartbeats(messages, workers.record)
      return publishing(connection, workers)
    }),
  )

const recordHeartbeats = (
  messages: Subscription,
  record: (heartbeat: WorkerHeartbeat) => Effect.Effect<void>,
) =>
  Stream.fromAsyncIterable(messages, String).pipe(
    Stream.runForEach((message) => {
      const heartbeat = message.data.length > bytes_max ? Option.none() : decode(message.string())
      if (Option.isNone(heartbeat)) return Effect.void
      const is_own = message.subject === heartbeatSubject(heartbeat.value.worker_id)
      return is_own ? record(heartbeat.value) : Effect.void
    }),
    // The subscription ends with the connection, and the connection with the process.
    Effect.ignore,
    Effect.forkScoped,
  )

const publish = (connection: NatsConnection, heartbeat: WorkerHeartbeat) =>
  Effect.ignore(
    Effect.try({
      try: () =>
        connection.publish(
          heartbeatSubject(heartbeat.worker_id),
          Schema.encodeSync(HeartbeatMessage)(heartbeat),
        ),
      catch: String,
    }),
  )
