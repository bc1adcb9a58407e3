/**
 * The NATS server that this process works with: a child of its own, or one that is given.
 * Source: DECISIONS "How it is run and reached" (NATS), facts on two servers over one store.
 */
import { Context, Effect, Layer, type Redacted, SubscriptionRef } from "effect"
import type { BusUsers } from "./users.ts"

/** Who a connection is; absent parts are not sent. */
export interface NatsLogin {
  readonly user?: string | undefined
  readonly password?: Redacted.Redacted | undefined
  readonly token?: Redacted.Redacted | undefined
  /** Path of a credentials file (JWT and seed). */
  readonly creds_file?: string | undefined
  /** Of an nkey. */
  readonly seed?: Redacted.Redacted | undefined
}

/** Files (PEM) for a server that is reached by TLS. */
export interface NatsTls {
  readonly ca_file?: string | undefined
  readonly cert_file?: string | undefined
  readonly key_file?: string | undefined
}

/** "running" is what an outside server always is: its connection tells more. */
export type NatsServerStatus = "running" | "restarting"

/** Where the bus is and who may do what there. */
export class NatsServer extends Context.Service<
  NatsServer,
  {
    /** One URL or several of one cluster. */
    readonly servers: ReadonlyArray<string>
    readonly tls: NatsTls | undefined
    /** The log, leases, timers, commands. */
    readonly core: NatsLogin
    /** Writes the published events, in an account of their own, and keeps the mirror of them. */
    readonly publisher: NatsLogin
    /** May only read the mirror of the published events; undefined with an outside server. */
    readonly subscriber: NatsLogin | undefined
    /** The same for subscribers by name, each with consumers and an inbox of its own. */
    readonly subscribers: ReadonlyMap<string, NatsLogin>
    /** Users that come and go; undefined where somebody else runs the server. */
    readonly users: BusUsers | undefined
    /** The present status, its changes, and a way to wait for one. */
    readonly status: SubscriptionRef.SubscriptionRef<NatsServerStatus>
    /** Why it takes no commit although it may run; undefined where nothing is known of that. */
    readonly trouble: () => string | undefined
    /** Process id of the child that runs now; undefined with an outside server. */
    readonly pid: Effect.Effect<number | undefined>
  }
>()("almanac/adapters/NatsServer") {
  /** A server or cluster that somebody else runs. */
  static readonly outside = (options: OutsideNatsOptions) =>
    Layer.effect(NatsServer, outsideNats(options))
}

export interface OutsideNatsOptions {
  /** URLs with commas between them, as in `nats.url`. */
  readonly url: string
  readonly login: NatsLogin
  readonly tls?: NatsTls | undefined
  /** Where published events have an account of their own; the login above writes them otherwise. */
  readonly publisher?: NatsLogin | undefined
  readonly subscriber?: NatsLogin | undefined
}

/** The given server as a value; whether it answers shows when a connection is made. */
export const outsideNats = Effect.fnUntraced(function* (options: OutsideNatsOptions) {
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
    trouble: () => undefined,
    pid: Effect.undefined,
  })
})
