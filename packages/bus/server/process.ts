/**
 * Our own nats-server: a child process that is restarted whenever it dies, hangs, or can no longer
 * write. Source: facts on two servers over one store.
 */
import { chmodSync, mkdirSync, renameSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { Clock, Deferred, Effect, SubscriptionRef } from "effect"
import { type NatsChild, type NatsChildOptions, natsChild } from "./child.ts"
import { NatsServerFailed } from "./failure.ts"
import { endOrphans } from "./orphans.ts"
import {
  type Liveness,
  liveness_default,
  newRecovery,
  type Recovery,
  unresponsive,
} from "./recovery.ts"
import type { NatsServerStatus } from "./server.ts"
import { type BusUser, BusUserRefused, busUsers } from "./users.ts"

/** Folders of the child, as absolute paths. */
export interface NatsFolders {
  readonly store: string
  readonly ports: string
}

export interface NatsProcessOptions {
  /** Absolute path of a folder that only this process uses. */
  readonly folder: string
  /** Path of nats-server. */
  readonly binary: string
  /** The text of nats.conf. It must have `ports_file_dir` and `store_dir`, and no secret. */
  readonly configuration: (folders: NatsFolders, users: ReadonlyArray<BusUser>) => string
  /** Secrets that the configuration references as `$VARIABLE`. */
  readonly environment: Readonly<Record<string, string>>
  /** Runs before each start of the child, with the folder of its store. */
  readonly before?: (store: string) => Effect.Effect<void>
  /** Silence after which the child is killed and restarted: a minute by default. */
  readonly patience?: Liveness
}

/** Restart delay of a child that died, in milliseconds: doubled each time up to the maximum. */
const restart_ms_min = 100
const restart_ms_max = 5_000
/** A child that ran this long in milliseconds was stable: the next restart delay is the minimum. */
const stable_ms = 60_000

/**
 * Starts nats-server and returns once it accepts connections. The port changes with every start of
 * this process and is kept when the child is restarted. An orphan of an earlier crash is stopped
 * first. Fails with NatsServerFailed if the first start fails.
 */
export const natsProcess = Effect.fnUntraced(function* (options: NatsProcessOptions) {
  const {
    binary,
    folder,
    environment,
    before = () => Effect.void,
    patience = liveness_default,
  } = options
  const config_path = join(folder, "nats.conf")
  yield* endOrphans(config_path)
  const { store, ports, write } = yield* prepare(folder, config_path, options.configuration)
  const status = yield* SubscriptionRef.make<NatsServerStatus>("restarting")
  const clock = yield* Clock.Clock
  const recovery = newRecovery(folder, () => clock.currentTimeMillisUnsafe())
  const state: Supervisor = { child: undefined, config_writes: 0, recovery, patience }
  const child_options = { binary, config_path, folder, ports, environment }
  const port = yield* supervise(child_options, status, state, before(store))
  return {
    port,
    users: busUsers(applyUsers(write, state)),
    status,
    problem: recovery.problem,
    pid: Effect.sync(() => state.child?.pid),
  }
})

/** State of the supervisor: the running child and a counter of configuration writes. */
interface Supervisor {
  child: NatsChild | undefined
  config_writes: number
  readonly recovery: Recovery
  readonly patience: Liveness
}

type Write = (users: ReadonlyArray<BusUser>) => void

/** Writes the users and reloads the child. A child that is starting reloads once it is ready. */
const applyUsers = (write: Write, state: Supervisor) => (users: ReadonlyArray<BusUser>) =>
  Effect.suspend(() => {
    write(users)
    state.config_writes++
    return state.child?.reload ?? Effect.void
  }).pipe(
    Effect.catchDefect((cause) =>
      Effect.fail(new BusUserRefused({ message: `nats.conf cannot be written: ${cause}` })),
    ),
  )

const prepare = (
  folder: string,
  conf: string,
  configuration: NatsProcessOptions["configuration"],
) =>
  Effect.try({
    try: () => {
      const [store, ports] = [join(folder, "jetstream"), join(folder, "ports")]
      // Killed servers leave their ports files behind.
      rmSync(ports, { recursive: true, force: true })
      for (const path of [store, ports]) mkdirSync(path, { recursive: true, mode: 0o700 })
      const write: Write = (users) => {
        // Atomic: a server that starts concurrently reads either the old or the new file.
        writeFileSync(`${conf}.new`, configuration({ store, ports }, users), { mode: 0o600 })
        renameSync(`${conf}.new`, conf)
      }
      write([])
      chmodSync(conf, 0o600)
      return { store, ports, write }
    },
    catch: (cause) => new NatsServerFailed({ message: `${folder} cannot be written: ${cause}` }),
  })

/** Keeps a child running until the scope closes; returns the port once the first one is ready. */
const supervise = Effect.fnUntraced(function* (
  options: NatsChildOptions,
  status: SubscriptionRef.SubscriptionRef<NatsServerStatus>,
  state: Supervisor,
  prepared: Effect.Effect<void>,
) {
  const first = yield* Deferred.make<number, NatsServerFailed>()
  const runOnce = Effect.fnUntraced(
    function* (port: number) {
      const { config_writes, recovery } = state
      yield* prepared
      recovery.onStart()
      const child = yield* natsChild({ ...options, onLine: recovery.onLine }, port)
      const at = yield* child.port
      state.child = child
      // The file changed during the start, so the child may have read either version.
      if (state.config_writes !== config_writes) yield* child.reload
      yield* SubscriptionRef.set(status, "running")
      yield* Deferred.succeed(first, at)
      return yield* Effect.raceAllFirst([
        child.ended,
        recovery.isDue,
        unresponsive(at, state.patience),
      ])
    },
    Effect.scoped,
    // spawn throws without memory or descriptors: the supervisor must survive that.
    Effect.catchDefect((cause) =>
      Effect.fail(new NatsServerFailed({ message: `nats-server cannot be started: ${cause}` })),
    ),
  )
  const restartForever = Effect.fnUntraced(function* (port: number) {
    let wait_ms = restart_ms_min
    while (true) {
      state.child = undefined
      yield* SubscriptionRef.set(status, "restarting")
      yield* Effect.sleep(wait_ms)
      const started = yield* Clock.currentTimeMillis
      const cause = yield* Effect.catch(runOnce(port), ({ message }) => Effect.succeed(message))
      const was_stable = (yield* Clock.currentTimeMillis) - started > stable_ms
      wait_ms = was_stable ? restart_ms_min : Math.min(2 * wait_ms, restart_ms_max)
      yield* Effect.logError(`nats-server exited (${cause}): restarting in ${wait_ms} ms`)
    }
  })
  const supervised = Effect.gen(function* () {
    const reason = yield* runOnce(-1)
    yield* Effect.logError(`nats-server exited (${reason}): restarting in ${restart_ms_min} ms`)
    return yield* restartForever(yield* Deferred.await(first))
  })
  yield* Effect.forkScoped(Effect.catch(supervised, (error) => Deferred.fail(first, error)))
  return yield* Deferred.await(first)
})
