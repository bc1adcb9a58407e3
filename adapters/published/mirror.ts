/**
 * The mirror of the published events for subscribers, in a separate account. The publisher
 * maintains it: creates and updates it, and recreates it when its source was replaced.
 *
 * The mirror has the sequences of its source, and contains the subscribers' durable consumers.
 *
 * Source: docs/decisions/0171.
 */
import {
  type ConsumerInfo,
  type JetStreamManager,
  jetstreamManager,
  type StreamInfo,
} from "@nats-io/jetstream"
import type { NatsConnection } from "@nats-io/transport-node"
import { Effect, Option, Schedule, Struct } from "effect"
import { mirror_api, mirror_consumer, mirror_deliveries, source_api } from "#adapters/bus/config.ts"
import { events_stream } from "#adapters/published/stream-name.ts"
import { EventsConnection, isTransient, NatsServer, undefinedIfMissing } from "#bus"
import { causeText } from "#schemas/cause-text.ts"

/** Milliseconds between two checks that the mirror exists and has the same source. */
const check_ms = 2_000

/** Maximum unacknowledged messages on their way to the mirror. */
const ack_pending_max = 20_000

/** Metadata key of the mirror: the creation time of its source, which identifies the stream. */
const source_key = "almanac.source"

/** JetStream's code for "consumer not found". */
const no_consumer = 10_014

type Jsm = JetStreamManager

const ifExists = <A>(request: Promise<A>, code: number): Promise<A | undefined> =>
  request.catch((cause: unknown) => {
    if (cause instanceof Error && "code" in cause && cause.code === code) return undefined
    throw cause
  })

const mirrorOptions = ({ config, created }: StreamInfo) => {
  const { num_replicas, max_bytes, max_age, persist_mode } = config
  return {
    name: events_stream,
    num_replicas,
    max_bytes,
    max_age,
    deny_delete: true,
    deny_purge: true,
    ...(persist_mode && { persist_mode }),
    mirror: {
      name: events_stream,
      external: { api: source_api, deliver: "" },
      consumer: { name: mirror_consumer, deliver_subject: mirror_deliveries },
    },
    metadata: { [source_key]: created },
  }
}

/** Whether the source's sequences continue those of the mirror. */
const continues = (mirror: StreamInfo, { config }: StreamInfo) =>
  mirror.state.last_seq > 0 && (config.first_seq ?? 0) > mirror.state.last_seq

/** Creates the consumer that feeds the mirror after sequence `after`. */
const createFeed = async (connection: NatsConnection, after: number, num_replicas: number) => {
  const from =
    after === 0
      ? { deliver_policy: "all" }
      : { deliver_policy: "by_start_sequence", opt_start_seq: after + 1 }
  const config = {
    ...from,
    name: mirror_consumer,
    durable_name: mirror_consumer,
    deliver_subject: mirror_deliveries,
    ack_policy: "flow_control",
    replay_policy: "instant",
    flow_control: true,
    max_ack_pending: ack_pending_max,
    num_replicas,
  }
  // The client's types have neither this acknowledgement policy nor a mirror's own consumer.
  const response = await connection.request(
    `$JS.API.CONSUMER.CREATE.${events_stream}.${mirror_consumer}`,
    JSON.stringify({ stream_name: events_stream, config }),
  )
  const { error } = response.json<{ readonly error?: { readonly description: string } }>()
  if (error !== undefined) throw new Error(error.description)
}

/** Moves durable consumers of subscribers from the stream to the mirror. */
const moveConsumers = async (source: Jsm, mirror: Jsm) => {
  const consumers: Array<ConsumerInfo> = []
  for await (const consumer of source.consumers.list(events_stream)) {
    const { durable_name } = consumer.config
    if (durable_name !== undefined && durable_name !== mirror_consumer) consumers.push(consumer)
  }
  for (const { name, config, ack_floor } of consumers) {
    // The delivery subject of a push consumer is not accessible to subscribers.
    if (config.deliver_subject === undefined) {
      const opt_start_seq = ack_floor.stream_seq + 1
      const rest = Struct.omit(config, ["opt_start_time", "metadata"])
      const start = { deliver_policy: "by_start_sequence", opt_start_seq } as const
      await mirror.consumers.add(events_stream, { ...rest, ...start })
    }
    await source.consumers.delete(events_stream, name)
  }
}

/** Brings the mirror up to date; without a source there is nothing to do. */
const syncMirror = async (
  connection: NatsConnection,
  source: Jsm,
  mirror: Jsm,
  is_own: boolean,
) => {
  const from = await source.streams.info(events_stream).catch(undefinedIfMissing)
  if (from === undefined) return
  const { config, created } = from
  const options = mirrorOptions(from)
  let mirror_info = await mirror.streams.info(events_stream).catch(undefinedIfMissing)
  const is_same = mirror_info?.config.metadata?.[source_key] === created
  if (mirror_info !== undefined && !is_same && !continues(mirror_info, from)) {
    await mirror.streams.delete(events_stream)
    mirror_info = undefined
  }
  const feeder = await ifExists(source.consumers.info(events_stream, mirror_consumer), no_consumer)
  if (feeder !== undefined && mirror_info === undefined) {
    await source.consumers.delete(events_stream, mirror_consumer)
  }
  if (feeder === undefined || mirror_info === undefined) {
    await createFeed(connection, mirror_info?.state.last_seq ?? 0, config.num_replicas)
  }
  if (mirror_info === undefined) await mirror.streams.add(options)
  else if (!isCurrent(mirror_info, options)) await mirror.streams.update(events_stream, options)
  if (is_own) await moveConsumers(source, mirror)
}

const isCurrent = ({ config }: StreamInfo, options: ReturnType<typeof mirrorOptions>) =>
  config.max_bytes === options.max_bytes &&
  config.max_age === options.max_age &&
  config.num_replicas === options.num_replicas &&
  config.metadata?.[source_key] === options.metadata[source_key]

/**
 * Maintains the mirror until the scope closes. A server without an account for it has no
 * subscribers. Failures are logged and retried; the published events do not depend on the mirror.
 */
export const keepMirror = Effect.gen(function* () {
  const { connection, jsm } = yield* EventsConnection
  const server = yield* Effect.serviceOption(NatsServer)
  const is_own = Option.exists(server, ({ users }) => users !== undefined)
  const mirror = yield* Effect.promise(() =>
    jetstreamManager(connection, { apiPrefix: mirror_api, checkAPI: false }),
  )
  let last_problem = ""
  const logProblem = (cause: unknown) => {
    const problem = isTransient(cause) ? "" : causeText(cause)
    if (problem === last_problem) return Effect.void
    last_problem = problem
    return Effect.logWarning(`The mirror of the published events is not updated: ${problem}`)
  }
  const sync = Effect.tryPromise({
    try: () => syncMirror(connection, jsm, mirror, is_own),
    catch: (cause) => cause,
  }).pipe(Effect.andThen(Effect.sync(() => (last_problem = ""))), Effect.catch(logProblem))
  yield* sync
  yield* Effect.forkScoped(Effect.repeat(sync, Schedule.spaced(check_ms)))
})
