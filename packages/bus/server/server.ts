/**
 * The NATS server that this process uses: its own child process, or an external one.
 * Source: DECISIONS "How it is run and reached" (NATS), facts on two servers over one store.
 */
import { Context, Effect, Layer, type Redacted, SubscriptionRef } from "effect"
import type { BusUsers } from "./users.ts"

/** Credentials of a connection; absent parts are not sent. */
export interface NatsLogin {
  readonly user?: string | undefined
  readonly password?: Redacted.Redacted | undefined
  readonly token?: Redacted.Redacted | undefined
  /** Path of a credentials file (JWT and seed). */
  readonly creds_file?: string | undefined
  /** Seed of an nkey. */
  readonly seed?: Redacted.Redacted | undefined
}

/** PEM files for a server with TLS. */
export interface NatsTls {
  readonly ca_file?: string | undefined
  readonly cert_file?: string | undefined
  readonly key_file?: string | undefined
}

/** An external server is always "running": its real state is visible only from the connection. */
export type NatsServerStatus = "running" | "restarting"

/** Address of the bus, and the logins for its accounts. */
export class NatsServer extends Context.Service<
  NatsServer,
  {
    /** One URL or several of one cluster. */
    readonly servers: ReadonlyArray<string>
    readonly tls: NatsTls | undefined
    /** Login for the log, leases, timers and commands. */
    readonly core: NatsLogin
    /**
     * Login that writes the published events, in a separate account, and maintains their mirror.
     */
    readonly publisher: NatsLogin
    /** Login that may only read the mirror of the published events; undefined if external. */
    readonly subscriber: NatsLogin | undefined
    /** Logins of named subscribers, each with its own consumers and inbox. */
    readonly subscribers: ReadonlyMap<string, NatsLogin>
    /** Users that are added and removed at run time; undefined for an external server. */
    readonly users: BusUsers | undefined
    /** The current status and its changes. */
    readonly status: SubscriptionRef.SubscriptionRef<NatsServerStatus>
    /** Why the server accepts no commits although it may run; undefined if none is known. */
    readonly problem: () => string | undefined
    /** Process id of the running child; undefined for an external server. */
    readonly pid: Effect.Effect<number | undefined>
  }
>()("almanac/adapters/NatsServer") {
  /** An external server or cluster. */
  static readonly external = (options: ExternalNatsOptions) =>
    Layer.effect(NatsServer, externalNats(options))
}

export interface ExternalNatsOptions {
  /** Comma-separated URLs, as in `nats.url`. */
  readonly url: string
  readonly login: NatsLogin
  readonly tls?: NatsTls | undefined
  /** Login of a separate account for published events; `login` if absent. */
  readonly publisher?: NatsLogin | undefined
  readonly subscriber?: NatsLogin | undefined
}

/** An external server, which is not contacted until a connection is made. */
export const externalNats = Effect.fnUntraced(function* (options: ExternalNatsOptions) {
  const { url, login, tls, publisher, subscriber } = options
  const status = yield* SubscriptionRef.make<NatsServerStatus>("running")
  const servers = url.split(",").map((server) => server.trim())
  return NatsServer.of({
    servers: servers.filter((server) => server !== ""),
    tls,
    core: login,
    publisher: publisher ?? login,
    subscriber,
    subscribers: new Map(),
    users: undefined,
    status,
    problem: () => undefined,
    pid: Effect.undefined,
  })
})
