/**
 * The configuration of our own nats-server: its limits, accounts and permissions as text.
 * Source: DECISIONS "How it is run and reached", "All services" (published events).
 */
import { type WorkerUser, workerUserText } from "#adapters/share-protection/worker-users.ts"

/**
 * The JetStream API level of nats-server 2.15, the oldest whose options are all honoured: older
 * ones take some of ours (time to live, atomic batches) and drop them without a word.
 */
export const api_level_min = 5

/** Also an argument of the child: a reload refuses a file that says otherwise. */
export const server_name = "almanac"

/** The stream of published events and what its messages are called. */
export const events_stream = "ALMANAC_EVENTS"
export const events_subject = "events.>"

/** The environment variables by which the child gets what no file and no argument may hold. */
export const variables = {
  port: "ALMANAC_NATS_PORT",
  core: "ALMANAC_NATS_CORE",
  publisher: "ALMANAC_NATS_PUBLISHER",
  subscriber: "ALMANAC_NATS_SUBSCRIBER",
} as const

/** Inboxes of the publisher, out of the subscribers' reach: they may read `_INBOX.>` only. */
export const publisher_inbox = "_PUBLISHER"

/**
 * What `subscriber` may ask for: exactly what @nats-io/jetstream 3.4 sends to read one stream by
 * ordered, ephemeral and durable consumers. No list of consumers: a name that is not known cannot
 * be deleted. All subscribers are one user, so one of them can listen to another's `_INBOX`: a
 * server of one's own (`nats.url`) can give each a user with an inbox prefix of its own.
 */
export const subscriber_requests = [
  "$JS.API.INFO",
  `$JS.API.STREAM.INFO.${events_stream}`,
  `$JS.API.CONSUMER.CREATE.${events_stream}`,
  `$JS.API.CONSUMER.CREATE.${events_stream}.>`,
  `$JS.API.CONSUMER.DURABLE.CREATE.${events_stream}.*`,
  `$JS.API.CONSUMER.INFO.${events_stream}.*`,
  `$JS.API.CONSUMER.DELETE.${events_stream}.*`,
  `$JS.API.CONSUMER.MSG.NEXT.${events_stream}.*`,
  `$JS.ACK.${events_stream}.>`,
  `$JS.FC.${events_stream}.>`,
]

/** What all streams of our own server may take on its disk. */
const store_gb_max = 100
export const store_bytes_max = store_gb_max * 1024 ** 3

/** Where the child keeps its things, all absolute. */
export interface NatsFolders {
  readonly store: string
  readonly ports: string
}

/**
 * The text of nats.conf. Nothing secret is in it: `$ALMANAC_...` are environment variables, and of
 * workers it has public keys.
 * The published events live in an account of their own, with a stream of their own: a consumer
 * may name any subject of its account as its destination, so that a reader of a stream in CORE
 * could make the server deliver into CORE (tried: it does, to a listener on that exact subject).
 */
export const natsConf = (
  { store, ports }: NatsFolders,
  workers: ReadonlyArray<WorkerUser>,
): string => `\
# Written by Almanac at each start, and when a worker comes or goes: changes made here are lost.
server_name: ${JSON.stringify(server_name)}
# Loopback only. The first start of the child asks for any free port (-1), later ones for the same.
host: "127.0.0.1"
port: $${variables.port}
ports_file_dir: ${JSON.stringify(ports)}
# The parent stamps the lines itself.
logtime: false

# Bytes. A commit is at most 512 KB, so twice that leaves room for its headers.
max_payload: 1MB
# Connections in all, and subscriptions of one of them: far above what one machine's agents and
# subscribers need, and low enough that a runaway client cannot use up the descriptors.
max_connections: 2000
max_subscriptions: 10000

jetstream {
  store_dir: ${JSON.stringify(store)}
  # An acknowledged commit is on disk: the default (2 minutes) loses them when the machine stops.
  sync_interval: always
  # At about 1.3 bytes stored per byte of event: some 400 million events of 200 bytes.
  max_file_store: ${store_gb_max}GB
  # Leases and ordered consumers only; the log and the published events are files.
  max_memory_store: 256MB
}

accounts {
  # The log, leases and timers. No other account can reach it: nothing is exported. Workers reach
  # their own subjects in it and nothing of JetStream.
  CORE {
    jetstream: enabled
    users: [
      { user: "core", password: $${variables.core} }
      ${workers.map(workerUserText).join("\n      ")}
    ]
  }
  # The published events. One stream; a reader's mistakes end here.
  SUBSCRIBERS {
    # Consumers: ten for each of the connections below. Memory holds their state.
    jetstream { max_streams: 1, max_consumers: 5000, max_mem: 64MB, max_file: 20GB }
    # Connections: subscribers never use up those that the core needs.
    limits { max_connections: 500 }
    users: [
      { user: "publisher", password: $${variables.publisher} },
      { user: "subscriber", password: $${variables.subscriber}, permissions: {
        publish: { allow: ${JSON.stringify(subscriber_requests)} }
        subscribe: { allow: ["_INBOX.>", ${JSON.stringify(events_subject)}] } } }
    ]
  }
}
`
