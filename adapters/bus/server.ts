/**
 * The NATS server that this process works with: a child of its own, or one that is given.
 * Source: DECISIONS "How it is run and reached" (NATS), facts on two servers over one store.
 */
import { randomBytes } from "node:crypto"
import { chmodSync, mkdirSync, renameSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { Clock, Context, Deferred, Effect, Layer, Redacted, SubscriptionRef } from "effect"
import { NatsServerFailed, natsBinary } from "#adapters/bus/binary.ts"
import { type NatsChild, type NatsChildOptions, natsChild } from "#adapters/bus/child.ts"
import { namedVariable, natsConf, variables } from "#adapters/bus/config.ts"
import { endOrphans } from "#adapters/bus/orphans.ts"
import {
  hangs,
  newRecovery,
  type Patience,
  patience_default,
  type Recovery,
} from "#adapters/bus/recovery.ts"
import { DataFolder } from "#adapters/data-folder/lock.ts"
import { moveEvents } from "#adapters/published/move-stream.ts"
import { userOf } from "#adapters/published/subscriber-users.ts"
import {
  type WorkerUser,
  WorkerUserRefused,
  type WorkerUsers,
  workerUsers,
} from "#adapters/share-protection/worker-users.ts"

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
    /** Users of workers; undefined where somebody else runs the server, and its users. */
    readonly workers: WorkerUsers | undefined
    /** The present status, its changes, and a way to wait for one. */
    readonly status: SubscriptionRef.SubscriptionRef<NatsServerStatus>
    /** Why it takes no commit although it may run; undefined where nothing is known of that. */
    readonly trouble: () => string | undefined
    /** Process id of the child that runs now; undefined with an outside server. */
    readonly pid: Effect.Effect<number | undefined>
  }
>()("almanac/adapters/NatsServer") {
  /** A child in the data folder, ended with the layer. */
  static readonly child = (options: NatsServerOptions = {}) =>
    Layer.effect(NatsServer, natsServer(options))

  /** A server or cluster that somebody else runs. */
  static readonly outside = (options: OutsideNatsOptions) =>
    Layer.effect(NatsServer, outsideNats(options))
}

export interface NatsServerOptions {
  /** Path of nats-server; PATH and the cache are searched when it is absent or empty. */
  readonly binary?: string | undefined
  /** Names of subscribers that have a user of their own, of letters and digits. */
  readonly subscribers?: ReadonlyArray<string> | undefined
  /** Runs before each start of the child, with the folder of its store. */
  readonly before?: (store: string) => Effect.Effect<void>
  /** After how much silence the child is killed and started again: a minute by default. */
  readonly patience?: Patience
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
    workers: undefined,
    status,
    trouble: () => undefined,
    pid: Effect.undefined,
  })
})

/** Milliseconds before the first restart of a child that died, doubled up to the second figure. */
const restart_ms_min = 100
const restart_ms_max = 5_000
/** A child that ran this long was well: its next death starts over at the shortest wait. */
const well_ms = 60_000

/**
 * Starts nats-server in the locked data folder and answers when it takes connections. Its port
 * and passwords are new with every start of this process and are kept when the child is
 * restarted, which happens whenever it dies, hangs, or cannot write any more. An orphan of an
 * earlier crash is ended first. Fails with NatsServerFailed when the first start does.
 */
export const natsServer = Effect.fnUntraced(function* ({
  binary,
  subscribers: names = [],
  before = () => Effect.void,
  patience = patience_default,
}: NatsServerOptions) {
  const folder = yield* DataFolder
  const path = yield* natsBinary(binary)
  const conf = join(folder.nats, "nats.conf")
  yield* endOrphans(conf)
  const { ports, write } = yield* prepare(folder.nats, conf, names)
  const [core, publisher, subscriber] = [password(), password(), password()]
  const subscribers = new Map(
    names.map((name) => [name, { user: userOf(name), password: password() }]),
  )
  const options = {
    binary: path,
    conf,
    folder: folder.nats,
    ports,
    environment: {
      [variables.core]: Redacted.value(core),
      [variables.publisher]: Redacted.value(publisher),
      [variables.subscriber]: Redacted.value(subscriber),
      ...Object.fromEntries(
        [...subscribers].map(([name, login]) => [
          namedVariable(name),
          Redacted.value(login.password),
        ]),
      ),
    },
  }
  const status = yield* SubscriptionRef.make<NatsServerStatus>("restarting")
  const clock = yield* Clock.Clock
  const recovery = newRecovery(folder.nats, () => clock.currentTimeMillisUnsafe())
  const now: Now = { child: undefined, written: 0, recovery, patience }
  const prepared = before(join(folder.nats, "jetstream"))
  const port = yield* supervise(options, status, now, prepared)
  return NatsServer.of({
    servers: [`nats://127.0.0.1:${port}`],
    tls: undefined,
    core: { user: "core", password: core },
    publisher: { user: "publisher", password: publisher },
    subscriber: { user: "subscriber", password: subscriber },
    subscribers,
    workers: workerUsers(rewritten(write, now)),
    status,
    trouble: recovery.trouble,
    pid: Effect.sync(() => now.child?.pid),
  })
})

/** The child that runs now, and how often its configuration was written. */
interface Now {
  child: NatsChild | undefined
  written: number
  readonly recovery: Recovery
  readonly patience: Patience
}

type Write = (workers: ReadonlyArray<WorkerUser>) => void

/** Writes who may come in, and has the child read it. One that starts meanwhile does so later. */
const rewritten = (write: Write, now: Now) => (workers: ReadonlyArray<WorkerUser>) =>
  Effect.suspend(() => {
    write(workers)
    now.written++
    return now.child?.reload ?? Effect.void
  }).pipe(
    Effect.catchDefect((cause) =>
      Effect.fail(new WorkerUserRefused({ message: `nats.conf cannot be written: ${cause}` })),
    ),
  )

/** 192 random bits; the letter in front keeps the configuration from reading a number. */
const password = () => Redacted.make(`p${randomBytes(24).toString("hex")}`)

const prepare = (folder: string, conf: string, subscribers: ReadonlyArray<string>) =>
  Effect.try({
    try: () => {
      const [store, ports] = [join(folder, "jetstream"), join(folder, "ports")]
      // Ports files of servers that were killed would stay for ever.
      rmSync(ports, { recursive: true, force: true })
      for (const path of [store, ports]) mkdirSync(path, { recursive: true, mode: 0o700 })
      moveEvents(store)
      const write: Write = (workers) => {
        // In one step: a server that starts meanwhile reads the old one or the new one.
        const text = natsConf({ store, ports }, workers, subscribers)
        writeFileSync(`${conf}.new`, text, { mode: 0o600 })
        renameSync(`${conf}.new`, conf)
      }
      write([])
      chmodSync(conf, 0o600)
      return { ports, write }
    },
    catch: (cause) => new NatsServerFailed({ message: `${folder} cannot be written: ${cause}` }),
  })

/** Keeps a child running until the scope closes; answers the port once the first one is ready. */
const supervise = Effect.fnUntraced(function* (
  options: NatsChildOptions,
  status: SubscriptionRef.SubscriptionRef<NatsServerStatus>,
  now: Now,
  prepared: Effect.Effect<void>,
) {
  const first = yield* Deferred.make<number, NatsServerFailed>()
  const once = Effect.fnUntraced(
    function* (port: number) {
      const { written, recovery } = now
      yield* prepared
      recovery.began()
      const child = yield* natsChild({ ...options, heard: recovery.heard }, port)
      const at = yield* child.port
      now.child = child
      // Changed while it started: which of the two it has read nobody knows.
      if (now.written !== written) yield* child.reload
      yield* SubscriptionRef.set(status, "running")
      yield* Deferred.succeed(first, at)
      return yield* Effect.raceAllFirst([child.ended, recovery.isDue, hangs(at, now.patience)])
    },
    Effect.scoped,
    // A machine without memory or descriptors throws: who supervises must outlive that.
    Effect.catchDefect((cause) =>
      Effect.fail(new NatsServerFailed({ message: `nats-server cannot be started: ${cause}` })),
    ),
  )
  const again = Effect.fnUntraced(function* (port: number) {
    let wait_ms = restart_ms_min
    while (true) {
      now.child = undefined
      yield* SubscriptionRef.set(status, "restarting")
      yield* Effect.sleep(wait_ms)
      const started = yield* Clock.currentTimeMillis
      const how = yield* Effect.catch(once(port), ({ message }) => Effect.succeed(message))
      const well = (yield* Clock.currentTimeMillis) - started > well_ms
      wait_ms = well ? restart_ms_min : Math.min(2 * wait_ms, restart_ms_max)
      yield* Effect.logError(`nats-server ended (${how}): started again in ${wait_ms} ms`)
    }
  })
  const whole = Effect.gen(function* () {
    const how = yield* once(-1)
    yield* Effect.logError(`nats-server ended (${how}): started again in ${restart_ms_min} ms`)
    return yield* again(yield* Deferred.await(first))
  })
  yield* Effect.forkScoped(Effect.catch(whole, (error) => Deferred.fail(first, error)))
  return yield* Deferred.await(first)
})
