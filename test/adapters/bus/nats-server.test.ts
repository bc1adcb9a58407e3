import { type ChildProcess, execFileSync, spawn } from "node:child_process"
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs"
import { join, resolve } from "node:path"
import { assert, it } from "@effect/vitest"
import { connect, type NatsConnection } from "@nats-io/transport-node"
import { Effect, Fiber, Logger, Redacted, Schedule, Stream, SubscriptionRef } from "effect"
import { ownServer } from "#adapters/bus/own-server.ts"
import { DataFolder, lockDataFolder } from "#adapters/data-folder/lock.ts"
import { connectBus, externalNats, type NatsServer, serversOf } from "#bus"
import { certificate } from "../../world/certificate.ts"
import { describeWithServer, temporaryFolder } from "../../world/programs/nats.ts"

/** 10 s for operations that usually take 0.1 s. */
const soon = Schedule.spaced(20)
const soon_times = 500

const until = <E>(what: string, condition: Effect.Effect<boolean, E>) =>
  condition.pipe(
    Effect.repeat({ until: (met) => met, schedule: soon, times: soon_times }),
    Effect.tap((met) => Effect.sync(() => assert.isTrue(met, what))),
  )

const isAlive = (pid: number) => {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}

/** A server in a temporary folder, together with the folder's service. */
const started = Effect.gen(function* () {
  const folder = yield* lockDataFolder(yield* temporaryFolder)
  const server = yield* Effect.provideService(ownServer({}), DataFolder, folder)
  return { folder, server, conf: join(folder.nats, "nats.conf") }
})

/** A client may reconnect before the process is known to be ready. */
const pidOf = (server: NatsServer["Service"]) =>
  server.pid.pipe(
    Effect.repeat({ until: (pid) => pid !== undefined, schedule: soon, times: soon_times }),
    Effect.map((pid) => {
      assert.isDefined(pid)
      return pid ?? 0
    }),
  )

/** Waits for the first reconnect; requests sent while disconnected time out. */
const reconnected = (connection: NatsConnection) =>
  Stream.fromAsyncIterable(connection.status(), String).pipe(
    Stream.filter(({ type }) => type === "reconnect"),
    Stream.take(1),
    Stream.runDrain,
  )

const refused = (options: Parameters<typeof connect>[0]) =>
  Effect.flip(Effect.tryPromise({ try: () => connect(options), catch: (cause) => `${cause}` }))

/** A program named nats-server that prints its version and then runs this command. */
const fake = (folder: string, version: string, then: string) => {
  const path = join(folder, "nats-server")
  const say = `[ "$1" = "--version" ] && { echo "nats-server: v${version}"; exit 0; }`
  writeFileSync(path, `#!/bin/sh\n${say}\n${then}\n`)
  chmodSync(path, 0o755)
  return path
}

const startFails = (binary: string) =>
  Effect.gen(function* () {
    const folder = yield* lockDataFolder(yield* temporaryFolder)
    const starting = Effect.provideService(ownServer({ binary }), DataFolder, folder)
    const error = yield* Effect.flip(Effect.scoped(starting))
    assert.equal(error._tag, "NatsServerFailed")
    return error.message
  })

describeWithServer("the nats-server of our own", () => {
  it.live("rejects a missing login and a wrong one", () =>
    Effect.gen(function* () {
      const { server } = yield* started
      const servers = [...server.servers]
      assert.match(yield* refused({ servers }), /authorization/i)
      assert.match(yield* refused({ servers, user: "core", pass: "wrong" }), /authorization/i)
      const { connection } = yield* connectBus({ servers, login: server.core })
      assert.equal(connection.info?.max_payload, 1_048_576)
      const login = { user: "core", password: Redacted.make("wrong") }
      const error = yield* Effect.flip(connectBus({ servers, login }))
      assert.equal(error._tag, "NatsUnreachable")
      assert.notInclude(error.message, "wrong")
    }),
  )

  it.live("has new passwords with each start, in no file, argument or log line", () => {
    const lines: Array<string> = []
    const heard = Logger.layer([Logger.make(({ message }) => void lines.push(String(message)))])
    return Effect.gen(function* () {
      const { server, conf } = yield* started
      const other = (yield* started).server
      const logins = [server.core, server.publisher, server.subscriber]
      const secrets = logins.map((login) => Redacted.value(login?.password ?? Redacted.make("")))
      assert.equal(new Set(secrets).size, 3)
      assert.notInclude(secrets, Redacted.value(other.core.password ?? Redacted.make("")))
      yield* Effect.ignore(connectBus({ servers: server.servers, login: { user: "core" } }))
      yield* until(
        "the refusal is logged",
        Effect.sync(() => /authentication/.test(`${lines}`)),
      )
      const process_list = readFileSync(`/proc/${yield* pidOf(server)}/cmdline`, "utf8")
      for (const secret of secrets) {
        for (const text of [readFileSync(conf, "utf8"), process_list, lines.join("\n")]) {
          assert.notInclude(text, secret)
        }
      }
      assert.equal(statSync(conf).mode & 0o777, 0o600)
      assert.match(readFileSync(conf, "utf8"), /^ {2}sync_interval: always$/m)
    }).pipe(Effect.provide(heard))
  })

  it.live("is started again on its port when it is killed, nothing acknowledged lost", () =>
    Effect.gen(function* () {
      const { server, conf } = yield* started
      const bus = yield* connectBus({ servers: server.servers, login: server.core })
      const kept = { name: "KEPT", subjects: ["kept.>"] }
      yield* Effect.promise(() => bus.jsm.streams.add(kept))
      for (const round of [1, 2, 3]) {
        const back = yield* Effect.forkChild(reconnected(bus.connection))
        yield* Effect.promise(() => bus.js.publish("kept.x", `${round}`))
        const before = yield* pidOf(server)
        process.kill(before, "SIGKILL")
        yield* Fiber.join(back)
        assert.notEqual(yield* pidOf(server), before)
        const read = () => bus.jsm.streams.getMessage("KEPT", { last_by_subj: "kept.x" })
        assert.equal((yield* Effect.promise(read))?.string(), `${round}`)
      }
      assert.deepEqual(yield* serversOf(conf), [yield* pidOf(server)])
    }),
  )

  it.live("is started again after a start that broke", () => {
    const lines: Array<string> = []
    const heard = Logger.layer([Logger.make(({ message }) => void lines.push(String(message)))])
    return Effect.gen(function* () {
      const { server, folder } = yield* started
      const ports = join(folder.nats, "ports")
      const before = yield* pidOf(server)
      // The child cannot report its port.
      rmSync(ports, { recursive: true })
      writeFileSync(ports, "")
      process.kill(before, "SIGKILL")
      yield* until(
        "the start that broke is logged",
        Effect.sync(() => /ENOTDIR/.test(`${lines}`)),
      )
      rmSync(ports)
      mkdirSync(ports)
      assert.notEqual(yield* pidOf(server), before)
    }).pipe(Effect.provide(heard))
  })

  it.live("says when it is down and when it is back", () =>
    Effect.gen(function* () {
      const { server } = yield* started
      assert.equal(yield* SubscriptionRef.get(server.status), "running")
      process.kill(yield* pidOf(server), "SIGKILL")
      const changes = Stream.take(SubscriptionRef.changes(server.status), 3)
      const seen = yield* Stream.runCollect(changes)
      assert.deepEqual([...seen], ["running", "restarting", "running"])
    }),
  )

  it.live("leaves no process behind, whether it runs, hangs or was just killed", () =>
    Effect.gen(function* () {
      for (const signal of ["SIGCONT", "SIGSTOP", "SIGKILL"] as const) {
        const { conf, pid } = yield* Effect.scoped(
          Effect.gen(function* () {
            const { server, conf } = yield* started
            const pid = yield* pidOf(server)
            process.kill(pid, signal)
            return { conf, pid }
          }),
        )
        assert.isFalse(isAlive(pid), signal)
        assert.deepEqual(yield* serversOf(conf), [])
      }
    }),
  )

  it.live("ends soon after its parent, though that was killed", () =>
    Effect.gen(function* () {
      const path = yield* temporaryFolder
      const { parent, orphan } = yield* parentWithServer(path)
      process.kill(parent.pid ?? 0, "SIGKILL")
      yield* until(
        "nothing is left",
        Effect.map(groupOf(orphan), ({ length }) => length === 0),
      )
    }),
  )

  it.live("an orphan whose parent and guard were killed is ended before the next start", () =>
    Effect.gen(function* () {
      const path = yield* temporaryFolder
      const { parent, orphan } = yield* parentWithServer(path)
      const guards = (yield* groupOf(orphan)).filter((pid) => pid !== orphan)
      assert.lengthOf(guards, 1)
      for (const guard of guards) process.kill(guard, "SIGKILL")
      process.kill(parent.pid ?? 0, "SIGKILL")
      yield* until(
        "the parent is gone",
        Effect.sync(() => parent.signalCode !== null),
      )
      assert.isTrue(isAlive(orphan), "the server survives its parent")
      const conf = join(path, "nats", "nats.conf")
      const foreign = yield* foreignProcess(conf)
      const folder = yield* lockDataFolder(path)
      const server = yield* Effect.provideService(ownServer({}), DataFolder, folder)
      assert.deepEqual(yield* serversOf(conf), [yield* pidOf(server)])
      assert.isTrue(isAlive(foreign), "a process that only names the file is left alone")
      const bus = yield* connectBus({ servers: server.servers, login: server.core })
      const info = yield* Effect.promise(() => bus.jsm.streams.info("KEPT"))
      assert.equal(info.state.messages, 1)
    }),
  )

  it.live("a server that is too old is refused with what to install", () =>
    Effect.gen(function* () {
      const binary = fake(yield* temporaryFolder, "2.10.27", "exit 1")
      const message = yield* startFails(binary)
      for (const part of [binary, "2.10.27", "2.15", "install"]) assert.include(message, part)
    }),
  )

  it.live("a server that is not there is refused with what to install", () =>
    Effect.gen(function* () {
      const message = yield* startFails("/nowhere/nats-server")
      for (const part of ["/nowhere/nats-server", "2.15", "install"]) assert.include(message, part)
    }),
  )

  it.live("a server that ends at once fails the start, with its last words", () =>
    Effect.gen(function* () {
      const words = 'echo "[1] [FTL] the disk is full" >&2; exit 1'
      const message = yield* startFails(fake(yield* temporaryFolder, "2.15.1", words))
      assert.include(message, "code 1")
      assert.include(message, "the disk is full")
    }),
  )
})

describeWithServer("a server that somebody else runs", () => {
  it.live("is used as given: several URLs, user and password, nothing is started", () =>
    Effect.gen(function* () {
      const { server: running } = yield* started
      const url = `nats://127.0.0.1:1, ${running.servers[0]}`
      const server = yield* externalNats({ url, login: running.core })
      assert.isUndefined(yield* server.pid)
      assert.isUndefined(server.subscriber)
      assert.deepEqual(server.publisher, running.core)
      yield* connectBus({ servers: server.servers, login: server.core })
    }),
  )

  it.live("is reached by TLS with a token, and not with another authority", () =>
    Effect.gen(function* () {
      const folder = yield* temporaryFolder
      const { url, tls } = yield* tlsServer(folder)
      const login = { token: Redacted.make("t0ken") }
      yield* connectBus({ servers: [url], login, tls })
      const error = yield* Effect.flip(connectBus({ servers: [url], login }))
      assert.match(error.message, /certificate/)
    }),
  )
})

/** One of our processes, which holds a folder and its server with one message stored. */
const parentWithServer = (path: string) =>
  Effect.acquireRelease(
    Effect.callback<{ readonly parent: ChildProcess; readonly orphan: number }>((resume) => {
      const script = resolve("test/adapters/bus/hold-nats-server.ts")
      const parent = spawn(process.execPath, [script, path], { stdio: ["ignore", "pipe", 2] })
      parent.stdout?.once("data", (line) => {
        resume(Effect.succeed({ parent, orphan: Number(line) }))
      })
    }),
    ({ parent, orphan }) =>
      Effect.sync(() => {
        parent.kill("SIGKILL")
        // The orphan still runs only if the test failed, so its id has not been reused.
        if (isAlive(orphan)) process.kill(orphan, "SIGKILL")
      }),
  )

/** The processes in this process's group; a server shares its group only with its guard. */
const groupOf = (pid: number) =>
  Effect.sync(() =>
    execFileSync("ps", ["-A", "-o", "pid=,pgid=,stat="], { encoding: "utf8" })
      .split("\n")
      .map((line) => line.trim().split(/\s+/))
      .filter(([, group, state]) => Number(group) === pid && !state?.startsWith("Z"))
      .map(([id]) => Number(id)),
  )

/** A different program with exactly our server's arguments; it waits for input. */
const foreignProcess = (conf: string) =>
  Effect.acquireRelease(
    Effect.sync(() => spawn("grep", ["-c", conf], { stdio: ["pipe", "ignore", "ignore"] })),
    (child) => Effect.sync(() => child.kill("SIGKILL")),
  ).pipe(Effect.map(({ pid }) => pid ?? 0))

const tlsServer = Effect.fnUntraced(function* (folder: string) {
  const { cert, key } = certificate({ folder, for: "DNS:localhost" })
  const conf = join(folder, "tls.conf")
  writeFileSync(
    `${conf}`,
    `listen: "127.0.0.1:-1"
    ports_file_dir: "${folder}"
    authorization { token: "t0ken" }
    tls { cert_file: "${cert}", key_file: "${key}" }
    jetstream { store_dir: "${folder}/store" }`,
  )
  const { findBinary } = yield* Effect.promise(() => import("../../../launcher/binaries.mjs"))
  const server = yield* Effect.acquireRelease(
    Effect.sync(() => spawn(`${findBinary("nats-server")?.path}`, ["-c", `${conf}`])),
    (child) => Effect.sync(() => child.kill("SIGKILL")),
  )
  const ports = join(folder, `nats-server_${server.pid}.ports`)
  yield* until(
    "the server is ready",
    Effect.sync(() => existsSync(ports) && readFileSync(ports, "utf8").endsWith("}")),
  )
  const { port } = new URL(JSON.parse(readFileSync(ports, "utf8")).nats[0])
  return { url: `tls://localhost:${port}`, tls: { ca_file: `${cert}` } }
})
