/**
 * A worker's own user of the bus, compromised: none of its publishes, requests, subscriptions or
 * reply subjects stores, changes, delivers or deletes anything.
 */
import { assert, it } from "@effect/vitest"
import type { NatsConnection as Connection } from "@nats-io/transport-node"
import { Effect, Layer, Logger, type Scope, Stream } from "effect"
import { Commands } from "#actors/commands.ts"
import { host } from "#actors/host.ts"
import { serveImages } from "#adapters/share-protection/images-nats.ts"
import { liveWorkersNats } from "#adapters/share-protection/live-workers-nats.ts"
import { serveWorkers } from "#adapters/share-protection/worker-commands.ts"
import {
  agentSubject,
  commandSubject,
  heartbeatSubject,
  inboxOf,
  newWorkerKeys,
  workerUser,
} from "#adapters/share-protection/worker-users.ts"
import { bucketStream, connectPlain, ensureStream, NatsConnection, NatsServer } from "#bus"
import { Log } from "#events/log.ts"
import { logJetStream } from "#journal"
import { WorkerId } from "#schemas/share-protection/id.ts"
import { serveEntry } from "#server/share-protection/worker-entry.ts"
import { count, origin } from "../contract/commands.ts"
import { describeWithServer, nats } from "../world/programs/nats.ts"
import {
  attack,
  heardOn,
  jetstreamRequests,
  jetstreamSubjects,
  spy,
  stateOf,
} from "./bus-attack.ts"

const one = WorkerId.make("worker-1")
const other = WorkerId.make("worker-2")
const stream = "ALMANAC_LOG"
const consumer = "reader"

const quiet = Logger.layer([])
const bus = host.pipe(
  Layer.provideMerge(logJetStream({ stream })),
  Layer.provideMerge(nats),
  Layer.provideMerge(quiet),
)

type Bus = Layer.Success<typeof bus> | Scope.Scope

const live = (name: string, body: Effect.Effect<void, unknown, Bus>) =>
  it.live(name, () => body.pipe(Effect.scoped, Effect.provide(Layer.fresh(bus))), 120_000)

/** Connects a worker the same way as its own process does. */
const entered = Effect.fnUntraced(function* (worker_id: WorkerId) {
  const { servers, users } = yield* NatsServer
  const { public_key, seed } = yield* newWorkerKeys
  assert(users !== undefined)
  yield* users.admit(workerUser({ worker_id, public_key }))
  return yield* connectPlain({ servers, login: { seed }, inbox: inboxOf(worker_id), is_new: true })
})

/** Everything that workers use, on a log with a commit, leases and a consumer. */
const served = Effect.gen(function* () {
  const { connection, jsm } = yield* NatsConnection
  yield* serveWorkers(connection)
  yield* serveImages(connection, { image: () => Effect.succeed(undefined) })
  const { users } = yield* NatsServer
  if (users !== undefined) yield* serveEntry(connection, users)
  yield* Layer.build(liveWorkersNats(connection))
  yield* ensureStream(jsm, bucketStream("leases", 1))
  yield* (yield* Commands).send(origin("a"), count("x", 1))
  yield* Effect.promise(async () => {
    await connection.request("$KV.leases.conductor", "core")
    await jsm.consumers.add(stream, { durable_name: consumer })
  })
  return { connection, jsm }
})

/** Subjects on which a reply would do harm. */
const replies = [
  "commit.share-protection.target.forged",
  "command.share-protection.job.x",
  commandSubject(other),
  agentSubject(other, "offer"),
  agentSubject(one, "offer"),
  heartbeatSubject(other),
  `${inboxOf(other)}.a.b`,
  "_INBOX.a.b",
  "$KV.leases.conductor",
  "conductor.share-protection.image",
  "worker-users.admit",
  `$JS.API.STREAM.DELETE.${stream}`,
  `$JS.API.STREAM.PURGE.${stream}`,
  `$JS.API.CONSUMER.DELETE.${stream}.${consumer}`,
  `$JS.ACK.${stream}.${consumer}.1.1.1.1700000000000000000.0`,
  "$SYS.REQ.SERVER.PING",
]

const subjects = [
  ...["commit.share-protection.target.forged", "commit.test.counter.x"],
  ...["command.share-protection.job.x", "command.blob-storage.cluster.main"],
  ...[commandSubject(one), commandSubject(other), `worker.${one}.x`, "worker-users.admit"],
  ...[agentSubject(one, "offer"), agentSubject(other, "offer"), agentSubject(other, "cancel")],
  ...[heartbeatSubject(one), heartbeatSubject(other), "live.blob-storage.node.x"],
  ...["conductor.share-protection.image", "events.share-protection.target.forged"],
  ...["$KV.leases.conductor", "$KV.other.x", "$O.x", "$MQTT.x", "_R_.x", "_INBOX.x"],
  ...[`${inboxOf(one)}.x`, `${inboxOf(other)}.x`],
  ...jetstreamRequests(stream, consumer),
  ...jetstreamRequests("KV_leases", consumer),
  ...jetstreamSubjects(stream, consumer),
]

const commits = Effect.gen(function* () {
  const read = yield* Stream.runCollect((yield* Log).read(""))
  return read.map(({ stream, position }) => `${position} ${stream}`)
})

/** The worker's own messages are delivered unchanged; responses go only to its own inbox. */
const own = (subject: string) =>
  subject === commandSubject(one) ||
  subject === heartbeatSubject(one) ||
  subject.startsWith(`${inboxOf(one)}.`)

describeWithServer("a worker's user of the bus", () => {
  live(
    "can store, change, deliver or delete nothing",
    Effect.gen(function* () {
      const { connection, jsm } = yield* served
      const attacker: Connection = yield* entered(one)
      const before = yield* stateOf(jsm)
      const log = yield* commits
      const stop = yield* spy(connection)
      yield* attack({ connection: attacker, subjects, replies, stream, consumer })
      // Responses are still in flight; those to later requests arrive later.
      yield* Effect.sleep(200)
      const delivered = yield* Effect.promise(stop)
      assert.deepEqual(
        delivered.filter((subject) => !own(subject)),
        [],
      )
      assert.include(delivered, commandSubject(one))
      assert.deepEqual(yield* stateOf(jsm), before)
      assert.deepEqual(yield* commits, log)
      assert.isFalse(attacker.isClosed())
    }),
  )

  live(
    "hears its orders and its answers, and nothing else",
    Effect.gen(function* () {
      const { connection } = yield* served
      const attacker = yield* entered(one)
      const wanted = [
        ...[">", "*", "*.*", "commit.>", "command.>", "worker.*.command", "agent.*.*", "live.>"],
        ...["conductor.>", "events.>", "$KV.>", "$JS.>", "$JS.API.>", "$JS.EVENT.>", "$JS.ACK.>"],
        ...["$JS.FC.>", "$SYS.>", "_INBOX.>", "_R_.>", "worker-users.admit", commandSubject(one)],
        ...[
          `${inboxOf(other)}.>`,
          agentSubject(other, "*"),
          heartbeatSubject(other),
          heartbeatSubject(one),
        ],
      ]
      const own = [agentSubject(one, "*"), `${inboxOf(one)}.>`]
      const heard = yield* heardOn(attacker, connection, [...wanted, ...own])
      assert.deepEqual(heard, own.toSorted())
    }),
  )

  live(
    "may reply to an order once, to the requester only",
    Effect.gen(function* () {
      const { connection, jsm } = yield* served
      const attacker = yield* entered(one)
      const before = yield* stateOf(jsm)
      const refused: Array<string> = []
      attacker.subscribe(agentSubject(one, "*"), {
        callback: (_, message) => {
          for (const subject of [...replies, message.reply ?? "", message.reply ?? ""]) {
            attacker.publish(subject, '{"taken":false}', { reply: replies[0] ?? "" })
          }
        },
      })
      yield* Effect.promise(() => attacker.flush())
      const stop = yield* spy(connection)
      const answer = yield* Effect.promise(() =>
        connection.request(agentSubject(one, "offer"), "{}", { timeout: 5_000 }),
      )
      assert.equal(answer.string(), '{"taken":false}')
      yield* Effect.promise(() => attacker.flush())
      const delivered = yield* Effect.promise(stop)
      assert.deepEqual(delivered, [answer.subject, agentSubject(one, "offer")].toSorted())
      assert.deepEqual(yield* stateOf(jsm), before)
      assert.deepEqual(refused, [])
    }),
  )
})
