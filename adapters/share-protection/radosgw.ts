/**
 * A real S3 server for tests and for trying out Almanac: Ceph's gateway with one monitor and one
 * store, as children of this process, on free ports of 127.0.0.1.
 *
 * Source: decision 0062.
 */
import { randomUUID } from "node:crypto"
import { existsSync, mkdirSync, readdirSync, rmSync, writeFileSync } from "node:fs"
import { request } from "node:http"
import { createServer, type Server } from "node:net"
import { join } from "node:path"
import { Clock, Effect, Exit, Redacted, Schedule, Schema, Scope } from "effect"
import {
  cephConf,
  keyring,
  keyringPath,
  monitorAddress,
  type RadosgwConfig,
} from "#adapters/share-protection/radosgw-config.ts"
import {
  type Programs,
  RadosgwFailed,
  runProgram,
  startChild,
} from "#adapters/share-protection/radosgw-program.ts"
import { causeText } from "#schemas/cause-text.ts"
import { findTree, treeEnvironment, trees } from "../../launcher/trees.mjs"

/** radosgw is not installed; the message says what to install. */
export class RadosgwMissing extends Schema.TaggedError<RadosgwMissing>()("RadosgwMissing", {
  message: Schema.String,
}) {}

export interface RadosgwOptions {
  /**
   * Absolute path of a folder that is empty or missing, or was left by an earlier run, which is
   * cleared.
   */
  readonly folder: string
  /**
   * `memstore` keeps data in memory; `bluestore` in a sparse file of the folder, for more than 2
   * GB.
   */
  readonly store: "memstore" | "bluestore"
  /** The S3 port; a free one if absent. */
  readonly port?: number | undefined
  /**
   * An additional free port with TCP_NODELAY, which does not delay the last packet of a response.
   */
  readonly quick_port?: number | undefined
}

/** A running server and its only user. */
export interface Radosgw {
  readonly endpoint: string
  readonly access_key: Redacted.Redacted
  readonly secret_key: Redacted.Redacted
  /** Stops the gateway only: the endpoint does not respond, and stored data stays. */
  readonly stop: Effect.Effect<void>
  /** Restarts it after `stop`, at the same endpoint. */
  readonly start: Effect.Effect<void, RadosgwFailed>
}

/** Startup timeout of the gateway in milliseconds; it needs 1,000, or 5,000 on a busy machine. */
const ready_ms = 60_000
/** Interval between two readiness checks in milliseconds. */
const check_ms = 50

/**
 * Starts the server, which is ready after about 2 s, and stops it with the scope. Its keys are new
 * on each start. The folder is cleared afterwards, and no child outlives this process, even if it
 * is killed.
 */
export const radosgw = Effect.fnUntraced(function* ({
  folder,
  store,
  port,
  quick_port,
}: RadosgwOptions) {
  const tree = findTree("radosgw")
  if (tree === undefined) {
    const message = `radosgw is required; install it with: ${trees.radosgw.install_command}`
    return yield* new RadosgwMissing({ message })
  }
  const ports = yield* freePorts(port)
  const config = { folder, tree, store, fsid: randomUUID(), ports, quick_port }
  yield* Effect.acquireRelease(prepare(config), () => Effect.sync(() => clear(folder)))
  const environment = { PATH: process.env.PATH ?? "/usr/bin:/bin", ...treeEnvironment(tree) }
  const programs = { folder, environment }
  yield* makeStores(programs, config)
  yield* startServer(programs, "ceph-mon", "a", "mon.a")
  yield* startServer(programs, "ceph-osd", "0", "osd.0")
  const gateway = yield* makeGateway(programs, `http://127.0.0.1:${ports[2]}`)
  yield* gateway.start
  return { ...gateway, ...(yield* createUser(programs)) } satisfies Radosgw
})

const conf = (folder: string) => join(folder, "ceph.conf")

/** A folder with other contents is not ours to clear. */
const prepare = ({ folder, ...config }: RadosgwConfig) =>
  Effect.flatMap(Clock.currentTimeMillis, (now) =>
    Effect.try({
      try: () => {
        mkdirSync(folder, { recursive: true, mode: 0o700 })
        if (readdirSync(folder).length > 0 && !existsSync(conf(folder))) {
          throw new Error("it is not empty")
        }
        clear(folder)
        for (const name of ["mon", "osd", "rgw"]) mkdirSync(join(folder, name))
        writeFileSync(conf(folder), cephConf({ folder, ...config }))
        writeFileSync(keyringPath(folder), keyring(Math.floor(now / 1000)), { mode: 0o600 })
      },
      catch: (cause) =>
        new RadosgwFailed({
          message: `${folder} cannot be used: ${causeText(cause)}`,
        }),
    }),
  )

/** Removes the configuration file last, because it marks the folder as ours. */
const clear = (folder: string) => {
  const names = readdirSync(folder).filter((name) => join(folder, name) !== conf(folder))
  for (const name of names) rmSync(join(folder, name), { recursive: true, force: true })
  rmSync(conf(folder), { force: true })
}

/**
 * The monitor starts with a map that already has the store, so that nothing needs to be added
 * later.
 */
const makeStores = Effect.fnUntraced(function* (programs: Programs, config: RadosgwConfig) {
  const { fsid, folder, ports } = config
  const [monmap, osdmap] = [join(folder, "monmap"), join(folder, "osdmap")]
  const common = ["-c", conf(folder)]
  const monitor = ["--create", "--fsid", fsid, "--addv", "a", monitorAddress(ports), monmap]
  const maps = ["--monmap", monmap, "--osdmap", osdmap]
  const store = ["-i", "0", "--mkfs", "--osd-uuid", randomUUID(), "--no-mon-config"]
  const setups = [
    runProgram(programs, "osdmaptool", [...common, "--createsimple", "1", osdmap]),
    runProgram(programs, "monmaptool", monitor),
    runProgram(programs, "ceph-osd", [...common, ...store]),
  ]
  yield* Effect.all(setups, { concurrency: "unbounded" })
  const keys = ["--keyring", keyringPath(folder)]
  yield* runProgram(programs, "ceph-mon", [...common, "-i", "a", "--mkfs", ...keys, ...maps])
})

const startServer = (programs: Programs, program: string, id: string, name: string) =>
  startChild(
    programs,
    program,
    ["-f", "-i", id, "-c", conf(programs.folder)],
    join(programs.folder, `${name}.log`),
  )

/** The gateway starts last and stops first, because it cannot stop without the others. */
const makeGateway = Effect.fnUntraced(function* (programs: Programs, endpoint: string) {
  const { folder } = programs
  const running: { scope: Scope.Closeable | undefined } = { scope: undefined }
  const stop = Effect.suspend(() => {
    const { scope } = running
    running.scope = undefined
    return scope === undefined ? Effect.void : Scope.close(scope, Exit.void)
  })
  const start = Effect.gen(function* () {
    yield* stop
    running.scope = yield* Scope.make()
    const args = ["-f", "-n", "client.rgw", "-c", conf(folder)]
    const log = join(folder, "client.rgw.log")
    const child = yield* Scope.provide(startChild(programs, "radosgw", args, log), running.scope)
    const exited = Effect.flatMap(child.ended, (exit) =>
      Effect.fail(child.failed(`ended (${exit})`)),
    )
    const timedOut = () => Effect.fail(child.failed(`did not respond within ${ready_ms} ms`))
    yield* isResponding(endpoint).pipe(
      Effect.repeat({ until: Boolean, schedule: Schedule.spaced(check_ms) }),
      Effect.timeoutOrElse({ duration: ready_ms, orElse: timedOut }),
      Effect.raceFirst(exited),
    )
  })
  yield* Effect.addFinalizer(() => stop)
  return { endpoint, stop, start }
})

const isResponding = (endpoint: string) =>
  Effect.callback<boolean>((resume) => {
    const probe = request(endpoint, { agent: false }, (response) => {
      response.resume()
      resume(Effect.succeed(true))
    })
    probe.on("error", () => resume(Effect.succeed(false))).end()
    return Effect.sync(() => probe.destroy())
  })

const User = Schema.fromJsonString(
  Schema.Struct({
    keys: Schema.NonEmptyArray(
      Schema.Struct({ access_key: Schema.String, secret_key: Schema.String }),
    ),
  }),
)

/** The server generates the keys, so that they do not appear on a command line. */
const createUser = Effect.fnUntraced(function* (programs: Programs) {
  const common = ["-n", "client.rgw", "-c", conf(programs.folder)]
  const user = ["user", "create", "--uid=almanac", "--display-name=almanac"]
  const output = yield* runProgram(programs, "radosgw-admin", [...common, ...user])
  const { keys } = yield* Effect.orDie(Schema.decodeEffect(User)(output))
  const [{ access_key, secret_key }] = keys
  return { access_key: Redacted.make(access_key), secret_key: Redacted.make(secret_key) }
})

/** Three free ports of 127.0.0.1, held open at once so that they differ. */
const freePorts = (port = 0) =>
  Effect.tryPromise({
    try: async () => {
      const servers: Array<Server> = []
      try {
        for (const requested of [port, 0, 0]) servers.push(await listenOn(requested))
        const [s3 = 0, v2 = 0, v1 = 0] = servers.map(portOf)
        return [v2, v1, s3] as const
      } finally {
        for (const server of servers) server.close()
      }
    },
    catch: () => new RadosgwFailed({ message: `port ${port} of 127.0.0.1 is taken` }),
  })

const listenOn = (port: number) =>
  new Promise<Server>((resolve, reject) => {
    const server = createServer()
    server.once("error", reject).listen(port, "127.0.0.1", () => resolve(server))
  })

const portOf = (server: Server) => {
  const address = server.address()
  return typeof address === "object" ? address?.port : undefined
}
