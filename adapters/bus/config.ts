/**
 * The configuration of our own nats-server: its limits, accounts and permissions as text.
 * Source: DECISIONS "How it is run and reached", "All services" (published events); decision 0171.
 */
import { events_stream } from "#adapters/published/stream-name.ts"
import {
  deniedToOthers,
  type NamedSubscriber,
  subscriberUserText,
} from "#adapters/published/subscriber-users.ts"
import { type WorkerUser, workerUserText } from "#adapters/share-protection/worker-users.ts"

/**
 * The JetStream API level of nats-server 2.15, the oldest whose options are all honoured: older
 * ones take some of ours (time to live, atomic batches) and drop them without a word.
 */
export const api_level_min = 5

/** Also an argument of the child: a reload refuses a file that says otherwise. */
export const server_name = "almanac"

/** The environment variables by which the child gets what no file and no argument may hold. */
export const variables = {
  port: "ALMANAC_NATS_PORT",
  core: "ALMANAC_NATS_CORE",
  publisher: "ALMANAC_NATS_PUBLISHER",
  subscriber: "ALMANAC_NATS_SUBSCRIBER",
} as const

/** The same for the password of a named subscriber. */
export const namedVariable = (name: string) => `${variables.subscriber}_${name.toUpperCase()}`

/** The consumer of the stream that feeds the mirror, and where the server delivers for it. */
export const mirror_consumer = "MIRROR"
export const mirror_deliveries = `mirror.${events_stream}`

/** How the publisher reaches JetStream of the mirror's account, and the mirror the source's. */
export const mirror_api = "MIRROR.API"
export const source_api = "EVENTS.API"

/** Consumers of all subscribers, and connections of theirs, in all. */
const consumers_max = 1000
const connections_max = 500
/** Subscriptions of one connection: a reader needs two. */
const subscriptions_max = 1000

/**
 * What a subscriber may ask: exactly what @nats-io/jetstream 3.4 sends to read one stream by
 * ordered, ephemeral and durable pull consumers. No list of consumers: a name that is not known
 * cannot be deleted.
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
]

/** What the publisher may do in the mirror's account: keep the mirror, and watch its readers. */
const keeper_requests = [
  "INFO",
  ...["INFO", "CREATE", "UPDATE", "DELETE"].map((call) => `STREAM.${call}.${events_stream}`),
  `CONSUMER.CREATE.${events_stream}.>`,
  `CONSUMER.LIST.${events_stream}`,
]

/** What the mirror asks of its source: to begin again where it stopped, and for more. */
const reset = `CONSUMER.RESET.${events_stream}.${mirror_consumer}`
const more = `$JS.FC.${events_stream}.${mirror_consumer}.>`

/**
 * The stream lives with the publisher. Subscribers read a mirror of it, which has no subjects of
 * its own: what a subscriber makes the server publish cannot be stored in it. The mirror has an
 * account of its own too, so that subscribers reach JetStream through an import of exactly the
 * requests that they need: answers end in the subscribers' account, where no JetStream listens.
 */
const lines = (all: ReadonlyArray<string>) => all.map((line) => `      ${line}`).join("\n")

/** An answer to this request is many messages. */
const responses = (request: string) =>
  request.includes(".MSG.NEXT.") ? ", response_type: stream" : ""

/** What the account of the stream lets out to the mirror, and what it asks of it. */
export const source_sharing = `\
    exports: [
      { service: "$JS.API.${reset}", accounts: [MIRROR] }
      { service: "${more}", accounts: [MIRROR] }
      { stream: "${mirror_deliveries}", accounts: [MIRROR] }
    ]
    imports: [
${lines(
  keeper_requests.map(
    (request) =>
      `{ service: { account: MIRROR, subject: "$JS.API.${request}" }, ` +
      `to: "${mirror_api}.${request}" }`,
  ),
)}
    ]`

const imported = (request: string) => `{ service: { account: MIRROR, subject: "${request}" } }`

/** What the mirror's account lets each of the two others ask, and no other account. */
const mirrorExports = (source: string) => {
  const keepers = keeper_requests.map((request) => `$JS.API.${request}`)
  return [...new Set([...keepers, ...subscriber_requests])].map((request) => {
    const who = [
      ...(keepers.includes(request) ? [source] : []),
      ...(subscriber_requests.includes(request) ? ["SUBSCRIBERS"] : []),
    ]
    return `{ service: "${request}"${responses(request)}, accounts: [${who.join(", ")}] }`
  })
}

/** The user that all subscribers share who have none of their own. */
const sharedUser = (password: string, named: ReadonlyArray<NamedSubscriber>) => {
  const denied = deniedToOthers(named.map(({ name }) => name))
  const deny = denied.length === 0 ? "" : `, deny: ${JSON.stringify(denied)}`
  return `\
      { user: "subscriber", password: ${password}, permissions: {
        publish: { allow: ${JSON.stringify(subscriber_requests)}${deny} }
        subscribe: { allow: ["_INBOX.>"] } } }`
}

/** The accounts MIRROR and SUBSCRIBERS beside the account of the stream. */
export const subscriberAccounts = (
  source: string,
  password: string,
  named: ReadonlyArray<NamedSubscriber> = [],
) => `\
  # A copy of the published events for subscribers, which has no subjects. No user logs in here.
  MIRROR {
    # Memory holds the state of consumers.
    jetstream { max_streams: 1, max_consumers: ${consumers_max}, max_mem: 64MB }
    imports: [
      { service: { account: ${source}, subject: "$JS.API.${reset}" }, to: "${source_api}.${reset}" }
      { service: { account: ${source}, subject: "${more}" } }
      { stream: { account: ${source}, subject: "${mirror_deliveries}" } }
    ]
    exports: [
${lines(mirrorExports(source))}
    ]
  }
  # Readers of the published events. No JetStream here: answers go nowhere else.
  SUBSCRIBERS {
    limits { max_connections: ${connections_max}, max_subscriptions: ${subscriptions_max} }
    imports: [
${lines(subscriber_requests.map(imported))}
    ]
    users: [
${[sharedUser(password, named), ...named.map(subscriberUserText)].join("\n")}
    ]
  }`

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
 * The published events live in accounts of their own: a user of JetStream can make the server
 * publish to any subject of that account, by the reply subject of a request or by the subject that
 * a consumer delivers to.
 */
export const natsConf = (
  { store, ports }: NatsFolders,
  workers: ReadonlyArray<WorkerUser>,
  subscribers: ReadonlyArray<string> = [],
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
  # The published events, where the publisher writes them and where our own readers are.
  EVENTS {
    jetstream: enabled
    users: [{ user: "publisher", password: $${variables.publisher} }]
${source_sharing}
  }
${subscriberAccounts(
  "EVENTS",
  `$${variables.subscriber}`,
  subscribers.map((name) => ({ name, password: `$${namedVariable(name)}` })),
)}
}
`
