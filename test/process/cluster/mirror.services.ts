/**
 * The mirror of the published events on three nats-servers with the deployment's own nats.conf: a
 * subscriber continues after a server dies, without duplicate or missing events.
 */
import { type ChildProcess, spawn } from "node:child_process"
import { once } from "node:events"
import { mkdirSync, readFileSync, writeFileSync } from "node:fs"
import { createServer } from "node:net"
import { join } from "node:path"
import { assert, it } from "@effect/vitest"
import { AckPolicy, jetstream, jetstreamManager } from "@nats-io/jetstream"
import { connect, type NatsConnection } from "@nats-io/transport-node"
import { Effect, Layer, Logger, Redacted } from "effect"
import { afterAll, beforeAll } from "vitest"
import { publishedEventsJetStream } from "#adapters/published/jetstream.ts"
import { events_stream } from "#adapters/published/stream-name.ts"
import { EventsConnection, NatsServer } from "#bus"
import { findBinary } from "../../../launcher/binaries.mjs"
import { describeWithServer } from "../../world/programs/nats.ts"
import { cleanUp, newFolder, until } from "../../world/server/server.ts"

const conf_file = join(import.meta.dirname, "../../../deploy/nats/nats.conf")
const names = ["nats-1", "nats-2", "nats-3"] as const
const password = "p".repeat(32)
const replicas = 3
const test_ms_max = 120_000
const soon_ms = 60_000
/** Events before and after a server dies. */
const count = 40

interface Server {
  readonly name: string
  readonly url: string
  child: ChildProcess
}

let servers: ReadonlyArray<Server> = []

const freePort = async () => {
  const server = createServer().listen(0, "127.0.0.1")
  await once(server, "listening")
  const address = server.address()
  server.close()
  return typeof address === "object" && address !== null ? address.port : 0
}

/** The deployment's file, with ports of this machine and passwords. */
const startServers = async () => {
  const folder = newFolder()
  const text = readFileSync(conf_file, "utf8")
  const ports = await Promise.all(names.map(async () => [await freePort(), await freePort()]))
  const routes = ports.map(([, route]) => `"nats://cluster:${password}@127.0.0.1:${route}"`)
  const quoted = `"${password}"`
  const passwords = `NATS_CORE: ${quoted}\nNATS_SUBSCRIBER: ${quoted}\nNATS_CLUSTER: ${quoted}\n`
  return names.map((name, i): Server => {
    const own = join(folder, name)
    mkdirSync(own)
    const [port = 0, route = 0] = ports[i] ?? []
    const conf = text
      .replace('listen: "0.0.0.0:4222"', `listen: "127.0.0.1:${port}"`)
      .replace('listen: "0.0.0.0:6222"', `listen: "127.0.0.1:${route}"`)
      .replace('http: "0.0.0.0:8222"', "")
      .replace("$NATS_ROUTES", `[${routes.join(", ")}]`)
    writeFileSync(join(own, "nats.conf"), conf)
    writeFileSync(join(own, "passwords.conf"), passwords)
    const args = ["-c", join(own, "nats.conf"), "-l", join(own, "nats.log")]
    const env = { ...process.env, NATS_NAME: name, NATS_STORE: join(own, "store") }
    const binary = findBinary("nats-server")?.path ?? "nats-server"
    const child = spawn(binary, args, { stdio: "ignore", env })
    return { name, url: `nats://127.0.0.1:${port}`, child }
  })
}

const urls = () => servers.map(({ url }) => url)

const as = (user: string) =>
  connect({ servers: urls(), user, pass: password, maxReconnectAttempts: -1 })

const login = (user: string) => ({ user, password: Redacted.make(password) })

/** The stream of published events and its mirror, as a process of a deployment keeps them. */
const published = Layer.suspend(() =>
  publishedEventsJetStream(replicas).pipe(
    Layer.provideMerge(EventsConnection.layer),
    Layer.provideMerge(NatsServer.external({ url: urls().join(","), login: login("core") })),
    Layer.provideMerge(Logger.layer([])),
  ),
)

/** Without the initial API check, which gets no response during a leader election. */
const manager = (connection: NatsConnection) => jetstreamManager(connection, { checkAPI: false })

/** Publishes in order, like the publisher: a publish without a response is checked or retried. */
const publish = (connection: NatsConnection, from: number) =>
  Effect.promise(async () => {
    const js = jetstream(connection)
    const jsm = await manager(connection)
    for (let n = from; n < from + count; n++) {
      await until(`event ${n}`, soon_ms, async () => {
        try {
          const expect = { lastSequence: n - 1 }
          await js.publish("events.blob-storage.blob.made", `${n}`, { expect })
          return true
        } catch {
          const info = await jsm.streams.info(events_stream).catch(() => undefined)
          return info !== undefined && info.state.last_seq >= n
        }
      })
    }
  })

const reader = async (connection: NatsConnection) => {
  const consumer = await jetstream(connection).consumers.get(events_stream, "mine")
  return { next: () => consumer.next({ expires: 2_000 }) }
}

/** Reads until this many different events are acknowledged; returns everything received. */
const read = (connection: NatsConnection, wanted: number) =>
  Effect.promise(async () => {
    const bodies: Array<string> = []
    await until(`${wanted} events`, soon_ms, async () => {
      try {
        const message = await (await reader(connection)).next()
        if (message !== null && (await message.ackAck())) bodies.push(message.string())
      } catch {
        // A server died; another one takes over.
      }
      return bodies.length >= wanted
    })
    return bodies
  })

describeWithServer("the mirror on three nats-servers", () => {
  beforeAll(async () => {
    servers = await startServers()
  }, test_ms_max)
  afterAll(async () => {
    for (const { child } of servers) child.kill("SIGKILL")
    await cleanUp()
  }, test_ms_max)

  it.live(
    "goes on when the server that leads it dies",
    () =>
      Effect.gen(function* () {
        const core = yield* Effect.promise(() =>
          until("a cluster", soon_ms, async () => {
            try {
              const connection = await as("core")
              await (await jetstreamManager(connection)).getAccountInfo()
              return connection
            } catch {
              return false
            }
          }),
        )
        yield* Effect.gen(function* () {
          const subscriber = yield* Effect.promise(() => as("subscriber"))
          const jsm = yield* Effect.promise(() => manager(subscriber))
          const info = yield* Effect.promise(() =>
            until("the mirror", soon_ms, async () => {
              const found = await jsm.streams.info(events_stream).catch(() => undefined)
              return found?.cluster?.leader !== undefined && found
            }),
          )
          assert.equal(info.config.num_replicas, replicas)
          const durable = { durable_name: "mine", ack_policy: AckPolicy.Explicit }
          yield* Effect.promise(() => jsm.consumers.add(events_stream, durable))
          yield* publish(core, 1)
          const before = yield* read(subscriber, count)

          const leader = servers.find(({ name }) => name === info.cluster?.leader)
          assert.isDefined(leader)
          leader?.child.kill("SIGKILL")
          yield* publish(core, count + 1)
          const after = yield* read(subscriber, count)
          const all = Array.from({ length: 2 * count }, (_, i) => `${i + 1}`)
          assert.deepEqual([...before, ...after], all)
          yield* Effect.promise(() => subscriber.close())
        }).pipe(Effect.provide(published))
        yield* Effect.promise(() => core.close())
      }),
    test_ms_max,
  )
})
