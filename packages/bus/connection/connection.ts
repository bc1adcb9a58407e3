/** Connections to the bus: reconnect forever, checked once, drained on shutdown. */
import { readFileSync } from "node:fs"
import type { Socket } from "node:net"
import {
  type JetStreamClient,
  type JetStreamManager,
  jetstream,
  jetstreamManager,
} from "@nats-io/jetstream"
import {
  AuthorizationError,
  type NatsConnection as Connection,
  type ConnectionOptions,
  connect,
  credsAuthenticator,
  nkeyAuthenticator,
  type Status,
} from "@nats-io/transport-node"
import { Context, Effect, Layer, Option, Redacted, Schedule, Schema, Stream } from "effect"
import { StopDeadline } from "#processes"
import { causeText } from "#schemas/cause-text.ts"
import { type NatsLogin, NatsServer, type NatsTls } from "../server/server.ts"
import { isLate, isLeaderless } from "./transient.ts"

/**
 * The JetStream API level of nats-server 2.15, the oldest that supports all our options: older
 * servers silently ignore some of them (time to live, atomic batches).
 */
const api_level_min = 5

/** The connection failed: no response, a rejected login, or an unreadable credentials file. */
export class NatsUnreachable extends Schema.TaggedError<NatsUnreachable>()("NatsUnreachable", {
  message: Schema.String,
}) {}

/** The server is too old; the message contains the version to install. */
export class NatsTooOld extends Schema.TaggedError<NatsTooOld>()("NatsTooOld", {
  message: Schema.String,
}) {}

/** A connection and its JetStream. Deliberately thin: the vendor's types are the interface. */
export interface Bus {
  readonly connection: Connection
  readonly js: JetStreamClient
  readonly jsm: JetStreamManager
}

/** The connection of the log, leases, timers and commands (account CORE). */
export class NatsConnection extends Context.Service<NatsConnection, Bus>()(
  "almanac/adapters/NatsConnection",
) {
  static readonly layer = Layer.effect(
    NatsConnection,
    Effect.flatMap(NatsServer, (server) => connectBus({ ...server, login: server.core })),
  )
}

/** The connection that writes and reads the published events (account EVENTS). */
export class EventsConnection extends Context.Service<EventsConnection, Bus>()(
  "almanac/adapters/EventsConnection",
) {
  static readonly layer = Layer.effect(
    EventsConnection,
    Effect.flatMap(NatsServer, (server) => connectBus({ ...server, login: server.publisher })),
  )
}

export interface BusOptions {
  readonly servers: ReadonlyArray<string>
  readonly login: NatsLogin
  readonly tls?: NatsTls | undefined
  /** First token of reply subjects, `_INBOX` if absent. */
  readonly inbox?: string
  /** Whether the login may be so new that the server does not know it yet. */
  readonly is_new?: boolean
}

/** Timeout of one attempt in milliseconds, and attempts for the first connection, 500 ms apart. */
const connect_ms = 5_000
const connect_attempts_max = 10
const connect_wait_ms = 500
/** Milliseconds between attempts to reconnect, plus jitter. */
const reconnect_ms = 100
const reconnect_jitter_ms = 200
/**
 * Milliseconds between pings, and unanswered pings until a connection is dead: a hanging or
 * unreachable server is detected after four to six seconds, before leases of ten seconds expire.
 */
const ping_ms = 2_000
const pings_lost_max = 2
/** Milliseconds within which JetStream must respond at startup, with a leader in a cluster. */
const jetstream_ms_max = 60_000
/** Drain timeout in milliseconds when a connection is closed; may be less on shutdown. */
const drain_ms = 3_000

/**
 * Connects, checks the server's API level, reconnects forever, and drains with the scope. A
 * rejected login fails immediately. Fails with NatsUnreachable or NatsTooOld.
 */
export const connectBus = Effect.fnUntraced(function* (options: BusOptions) {
  const connection = yield* connectPlain(options)
  const jsm = yield* Effect.tryPromise({
    // The next request checks whether JetStream is available.
    try: () => jetstreamManager(connection, { checkAPI: false }),
    catch: (cause) => unreachable(options, `JetStream does not respond: ${causeText(cause)}`),
  })
  const account = yield* Effect.tryPromise({
    try: () => jsm.getAccountInfo(),
    catch: (cause) => cause,
  }).pipe(
    // A server that is recovering its streams, or a stalled machine, times out; a cluster that is
    // forming reports no leader.
    Effect.retry({
      schedule: Schedule.spaced(connect_wait_ms).pipe(
        Schedule.upTo({ duration: jetstream_ms_max }),
      ),
      while: (cause) => isLate(cause) || isLeaderless(cause),
    }),
    Effect.mapError((cause) =>
      unreachable(options, `JetStream does not respond: ${causeText(cause)}`),
    ),
  )
  // Servers before 2.11 do not report their API level.
  const level = (account.api as { readonly level?: number }).level ?? 0
  if (level < api_level_min) {
    return yield* tooOld(connection.info?.version ?? "unknown", level)
  }
  return { connection, js: jetstream(connection), jsm } satisfies Bus
})

/**
 * Connects for core messages only, without JetStream. Reconnects forever, and drains with the
 * scope. Fails with NatsUnreachable.
 */
export const connectPlain = Effect.fnUntraced(function* (options: BusOptions) {
  // Interruptible: a shutdown must not wait for a server that does not respond.
  const connection = yield* Effect.acquireRelease(open(options), close, { interruptible: true })
  yield* Effect.forkScoped(
    Stream.runForEach(Stream.fromAsyncIterable(connection.status(), String), (status) => {
      if (status.type === "staleConnection") abandon(connection)
      return logStatus(status)
    }).pipe(Effect.ignore),
  )
  return connection
})

const open = (options: BusOptions) =>
  Effect.tryPromise({
    try: (ending) => {
      const connecting = connect(connectionOptions(options))
      const leave = () => connecting.then((connection) => connection.close())
      ending.addEventListener("abort", () => void leave().catch(() => undefined))
      return connecting
    },
    catch: (cause) => cause,
  }).pipe(
    Effect.retry({
      schedule: Schedule.spaced(connect_wait_ms),
      times: connect_attempts_max - 1,
      while: (cause) => options.is_new === true || !(cause instanceof AuthorizationError),
    }),
    Effect.mapError((cause) => unreachable(options, causeText(cause))),
  )

const connectionOptions = ({ servers, login, tls, inbox }: BusOptions): ConnectionOptions => ({
  servers: [...servers],
  name: "almanac",
  timeout: connect_ms,
  maxReconnectAttempts: -1,
  reconnectTimeWait: reconnect_ms,
  reconnectJitter: reconnect_jitter_ms,
  reconnectJitterTLS: reconnect_jitter_ms,
  // A server that is being set up may reject logins for a while: that must not end the process.
  ignoreAuthErrorAbort: true,
  // Otherwise each request captures a stack trace that is almost never needed.
  noAsyncTraces: true,
  pingInterval: ping_ms,
  maxPingOut: pings_lost_max,
  ...(inbox && { inboxPrefix: inbox }),
  ...credentials(login),
  ...(tls && tlsFiles(tls)),
})

const credentials = (login: NatsLogin): ConnectionOptions => ({
  ...passwords(login),
  ...keys(login),
})

const passwords = ({ user, password, token }: NatsLogin): ConnectionOptions => ({
  ...(user && { user }),
  ...(password && { pass: Redacted.value(password) }),
  ...(token && { token: Redacted.value(token) }),
})

const keys = ({ creds_file, seed }: NatsLogin): ConnectionOptions => ({
  ...(creds_file && { authenticator: credsAuthenticator(readFileSync(creds_file)) }),
  ...(seed && { authenticator: nkeyAuthenticator(Buffer.from(Redacted.value(seed))) }),
})

/** Without files the server decides whether to use TLS: an empty object would require it. */
const tlsFiles = ({ ca_file, cert_file, key_file }: NatsTls): ConnectionOptions => {
  const tls = {
    ...(ca_file && { caFile: ca_file }),
    ...(cert_file && { certFile: cert_file }),
    ...(key_file && { keyFile: key_file }),
  }
  return Object.keys(tls).length === 0 ? {} : { tls }
}

const close = (connection: Connection) =>
  Effect.gen(function* () {
    const wait_ms = yield* (yield* StopDeadline).part(drain_ms)
    const drained = yield* Effect.tryPromise({ try: () => connection.drain(), catch: String }).pipe(
      Effect.timeoutOption(wait_ms),
      // A connection that is down has nothing to drain into.
      Effect.option,
    )
    if (Option.isNone(Option.flatten(drained))) abandon(connection)
    yield* Effect.promise(() => connection.close())
  })

/**
 * Destroys the socket of a connection whose peer does not respond. The client itself would first
 * flush pending data, which never completes if it exceeds the kernel's buffer.
 */
const abandon = (connection: Connection) => {
  // The client has no API for this; these are its private fields as of 3.4.
  const { protocol } = connection as unknown as {
    readonly protocol?: { readonly transport?: { readonly socket?: Socket } }
  }
  protocol?.transport?.socket?.destroy()
}

const logStatus = (status: Status) => {
  const { type } = status
  if (type === "disconnect") return Effect.logWarning(`connection to ${status.server} lost`)
  if (type === "reconnect") return Effect.logInfo(`reconnected to ${status.server}`)
  if (type === "error") return Effect.logError(`NATS error: ${status.error.message}`)
  if (type === "slowConsumer") {
    return Effect.logWarning(
      `${status.pending} messages are waiting for a slow consumer in this process`,
    )
  }
  return Effect.logDebug(`NATS connection: ${type}`)
}

const unreachable = ({ servers }: BusOptions, why: string) =>
  new NatsUnreachable({ message: `cannot use NATS at ${servers.join(", ")}: ${why}` })

const tooOld = (version: string, level: number) =>
  new NatsTooOld({
    message:
      `nats-server ${version} has JetStream API level ${level}, but ${api_level_min} is ` +
      "required: " +
      "install nats-server 2.15 or later.",
  })
