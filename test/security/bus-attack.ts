/** Attacks by an intruder with a user of the bus, and ways to observe their effect. */
import type { JetStreamManager } from "@nats-io/jetstream"
import { type NatsConnection as Connection, headers, type Msg } from "@nats-io/transport-node"
import { Effect } from "effect"

/** All requests of the JetStream API: nats-server 2.15's own list, and those of clients of 3.4. */
export const jetstreamRequests = (stream: string, consumer: string): ReadonlyArray<string> =>
  [
    ...["INFO", "STREAM.NAMES", "STREAM.LIST", "DIRECT.GET", "META.RESCUE", "SERVER.EVACUATE"],
    ...["META.LEADER.STEPDOWN", "SERVER.REMOVE", "ACCOUNT.PURGE.CORE"],
    ...["STREAM.CREATE", "STREAM.UPDATE", "STREAM.DELETE"].flatMap((call) => [
      `${call}.${stream}`,
      `${call}.FORGED`,
    ]),
    ...["STREAM.INFO", "STREAM.PURGE", "STREAM.MSG.DELETE", "STREAM.MSG.GET", "DIRECT.GET"].map(
      (call) => `${call}.${stream}`,
    ),
    ...[
      "SNAPSHOT",
      "RESTORE",
      "PEER.REMOVE",
      "PEER.EVACUATE",
      "LEADER.STEPDOWN",
      "CANCEL_MOVE",
    ].map((call) => `STREAM.${call}.${stream}`),
    `STREAM.RESTORE.FORGED`,
    `ACCOUNT.STREAM.MOVE.CORE.${stream}`,
    `ACCOUNT.STREAM.CANCEL_MOVE.CORE.${stream}`,
    `DIRECT.GET.${stream}.>`,
    ...["CREATE", "LIST", "NAMES"].map((call) => `CONSUMER.${call}.${stream}`),
    ...["CREATE", "DURABLE.CREATE", "INFO", "DELETE", "MSG.NEXT", "PAUSE", "UNPIN", "RESET"].map(
      (call) => `CONSUMER.${call}.${stream}.${consumer}`,
    ),
    `CONSUMER.LEADER.STEPDOWN.${stream}.${consumer}`,
    `CONSUMER.CREATE.${stream}.${consumer}.>`,
  ].map((call) => `$JS.API.${call}`)

/** Other subjects that JetStream subscribes to or publishes on. */
export const jetstreamSubjects = (stream: string, consumer: string): ReadonlyArray<string> => [
  `$JS.ACK.${stream}.${consumer}.1.1.1.1700000000000000000.0`,
  `$JS.ACK._.X.${stream}.${consumer}.1.1.1.1700000000000000000.0.x`,
  `$JS.FC.${stream}.${consumer}.x`,
  `$JS.SNAPSHOT.ACK.${stream}.x`,
  `$JS.SNAPSHOT.RESTORE.${stream}.x`,
  `$JS.EVENT.ADVISORY.API`,
  `$JS.EVENT.ADVISORY.STREAM.DELETED.${stream}`,
  "$SYS.REQ.SERVER.PING",
  "$SYS.REQ.ACCOUNT.CORE.CONNZ",
  "$SYS.ACCOUNT.CORE.CONNECT",
]

/** Request bodies that some of these subjects understand, and an empty one. */
const bodiesOf = (stream: string, consumer: string) => [
  "",
  JSON.stringify({
    stream_name: stream,
    config: {
      name: consumer,
      durable_name: consumer,
      ack_policy: "none",
      deliver_policy: "all",
      deliver_subject: "commit.share-protection.target.forged",
    },
  }),
  JSON.stringify({ name: "FORGED", subjects: ["forged.>"] }),
]

export interface Attack {
  readonly connection: Connection
  readonly subjects: ReadonlyArray<string>
  readonly replies: ReadonlyArray<string>
  readonly stream: string
  readonly consumer: string
}

/**
 * Publishes every body to every subject, with every reply subject, and with the server's headers.
 */
export const attack = ({ connection, subjects, replies, stream, consumer }: Attack) =>
  Effect.promise(async () => {
    const bodies = bodiesOf(stream, consumer)
    for (const subject of subjects) {
      for (const reply of replies) {
        for (const body of bodies) connection.publish(subject, body, { reply })
        const response_headers = headers()
        for (const [name, value] of server_headers) response_headers.set(name, value)
        response_headers.set("Nats-Trace-Dest", reply)
        connection.publish(subject, bodies[0], { headers: response_headers, reply })
        await connection.flush()
      }
    }
  })

/** Headers that a server or JetStream acts on. */
const server_headers = [
  ["Nats-Request-Info", '{"acc":"CORE","user":"core"}'],
  ["Nats-Rollup", "all"],
  ["Nats-TTL", "1s"],
  ["Nats-Schedule", "@every 1s"],
  ["Nats-Schedule-Target", "commit.share-protection.target.forged"],
  ["Nats-Expected-Last-Sequence", "0"],
  ["Nats-Msg-Id", "forged"],
  ["Nats-Batch-Id", "forged"],
  ["Nats-Batch-Sequence", "1"],
  ["Nats-Batch-Commit", "1"],
] as const

/** Every stream and consumer of an account, with all of their mutable state. */
export const stateOf = (jsm: JetStreamManager) =>
  Effect.promise(async () => {
    const all: Record<string, unknown> = {}
    for await (const { config, created, state } of jsm.streams.list()) {
      const kept = { ...state, consumer_count: 0 }
      all[config.name] = { config, created, kept }
      for await (const consumer of jsm.consumers.list(config.name)) {
        const { name, config: its, created: made, delivered, ack_floor, num_pending } = consumer
        const known = { config: its, made, num_pending }
        const places = [delivered.stream_seq, ack_floor.stream_seq]
        all[`${config.name} ${name}`] = { ...known, places }
      }
    }
    return all
  })

/** Collects all subjects with deliveries in the account until `stop` is called. */
export const spy = (connection: Connection) =>
  Effect.promise(async () => {
    const seen = new Set<string>()
    const callback = (_: Error | null, { subject }: Msg) => void seen.add(subject)
    const subscription = connection.subscribe(">", { callback })
    await connection.flush()
    return async () => {
      await connection.flush()
      subscription.unsubscribe()
      return [...seen].toSorted()
    }
  })

/** The subjects on which the connection receives messages from a user with all rights. */
export const heardOn = (
  attacker: Connection,
  mighty: Connection,
  subjects: ReadonlyArray<string>,
) =>
  Effect.promise(async () => {
    const heard = new Set<string>()
    for (const subject of subjects) {
      attacker.subscribe(subject, {
        callback: (error) => {
          if (error === null) heard.add(subject)
        },
      })
    }
    await attacker.flush()
    for (const subject of subjects) {
      const literal = subject.replaceAll(/\*|>/g, "x")
      if (!literal.startsWith("$SYS") && !literal.startsWith("$JS.API")) {
        mighty.publish(literal, "secret")
      }
    }
    await mighty.flush()
    await attacker.flush()
    return [...heard].toSorted()
  })
