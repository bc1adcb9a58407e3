/** The bus permissions of a worker's user, and the outcome of a worker's commands. */
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { assert } from "@effect/vitest"
import { jetstreamManager } from "@nats-io/jetstream"
import type { NatsConnection as Connection } from "@nats-io/transport-node"
import { Context, Effect, Layer, Redacted, Schedule, Stream } from "effect"
import { Agents } from "#actors/share-protection/ports/agents.ts"
import { LiveWorkers } from "#actors/share-protection/ports/live-workers.ts"
import { DataFolder } from "#adapters/data-folder/lock.ts"
import { agentsNats } from "#adapters/share-protection/agents-nats.ts"
import {
  liveWorkersNats,
  publishedLiveWorkers,
} from "#adapters/share-protection/live-workers-nats.ts"
import {
  agentSubject,
  commandSubject,
  heartbeatSubject,
  inboxOf,
  newWorkerKeys,
  workerUser,
} from "#adapters/share-protection/worker-users.ts"
import { connectPlain, NatsConnection, NatsServer } from "#bus"
import { WorkerId } from "#schemas/share-protection/id.ts"
import { describeNats } from "../../../world/programs/nats.ts"
import { orders } from "../../../world/share-protection/order-samples.ts"

const one = WorkerId.make("worker-1")
const other = WorkerId.make("worker-2")
const [order] = orders
const soon_ms = 30_000
const never_ms = 150

const usersOf = Effect.map(NatsServer, ({ users }) => {
  assert(users !== undefined)
  return users
})

/** The worker's own connection, and the server's permission errors. */
const entered = Effect.fnUntraced(function* (worker_id: WorkerId) {
  const { servers } = yield* NatsServer
  const keys = yield* newWorkerKeys
  yield* (yield* usersOf).admit(workerUser({ worker_id, public_key: keys.public_key }))
  const inbox = inboxOf(worker_id)
  const connection = yield* connectPlain({
    servers,
    login: { seed: keys.seed },
    inbox,
    is_new: true,
  })
  return { connection, keys }
})

/** Whether the server delivers a message to a subscriber with the server's own login. */
const reaches = Effect.fnUntraced(function* (from: Connection, subject: string) {
  const { connection } = yield* NatsConnection
  const heard = connection.subscribe(subject, { max: 1 })
  yield* Effect.tryPromise(() => connection.flush())
  from.publish(subject, "x")
  const message = yield* Effect.timeoutOption(
    Effect.promise(async () => {
      for await (const message of heard) return message
      return undefined
    }),
    never_ms,
  )
  heard.unsubscribe()
  return message._tag === "Some"
})

/** Whether the server allows the subscription. */
const hears = Effect.fnUntraced(function* (at: Connection, subject: string) {
  const { connection } = yield* NatsConnection
  let is_heard = false
  at.subscribe(subject, {
    callback: (error) => {
      if (error === null) is_heard = true
    },
  })
  yield* Effect.promise(() => at.flush())
  connection.publish(subject.replace(/[*>]/, "x"), "secret")
  yield* Effect.promise(() => connection.flush())
  yield* Effect.promise(() => at.flush())
  return is_heard
})

describeNats("a worker's user", (it) => {
  it.effect("says and hears its own: commands, heartbeats, orders and their answers", () =>
    Effect.gen(function* () {
      const { connection } = yield* entered(one)
      for (const subject of [commandSubject(one), heartbeatSubject(one)]) {
        assert.isTrue(yield* reaches(connection, subject), subject)
      }
      const options = { command_timeout_seconds: 1 }
      const core = (yield* NatsConnection).connection
      const [agent, conductor] = [
        Context.get(yield* Layer.build(agentsNats(connection, options)), Agents),
        Context.get(yield* Layer.build(agentsNats(core, options)), Agents),
      ]
      const cancel = () => Effect.succeed(true)
      yield* agent.attach(one, { offer: () => Effect.void, cancel })
      yield* conductor.offer(one, order)
      assert.isTrue(yield* conductor.cancel(one, order.job_id, 1))
      const { find } = Context.get(yield* Layer.build(liveWorkersNats(core)), LiveWorkers)
      // After the flush, the server has registered the subscription.
      yield* Effect.promise(() => core.flush())
      const mouth = Context.get(yield* Layer.build(publishedLiveWorkers(connection)), LiveWorkers)
      yield* mouth.publish({ worker_id: one, jobs: [] })
      yield* Effect.repeat(
        Effect.sync(() => find(one)),
        { until: (heard) => heard !== undefined, schedule: Schedule.spaced(5), times: 1000 },
      )
      assert.isDefined(find(one))
    }).pipe(Effect.scoped),
  )

  it.effect("cannot send messages of others", () =>
    Effect.gen(function* () {
      const { connection } = yield* entered(one)
      const subjects = [
        commandSubject(other),
        heartbeatSubject(other),
        agentSubject(other, "offer"),
        "command.share-protection.job.x",
        "command.blob-storage.cluster.main",
        "commit.share-protection.job.x",
        "worker-users.admit",
        "events.x.y.z",
        "live.blob-storage.node.x",
        "$JS.API.INFO",
        "_INBOX.x",
        agentSubject(one, "offer"),
      ]
      for (const subject of subjects) assert.isFalse(yield* reaches(connection, subject), subject)
    }).pipe(Effect.scoped),
  )

  it.effect("cannot hear what is for others", () =>
    Effect.gen(function* () {
      const { connection } = yield* entered(one)
      const subjects = [
        "commit.>",
        "agent.*.offer",
        agentSubject(other, "offer"),
        ">",
        "worker.*.command",
        "_INBOX.>",
        `${inboxOf(other)}.>`,
        "$JS.>",
        "live.share-protection.worker.*",
      ]
      for (const subject of subjects) assert.isFalse(yield* hears(connection, subject), subject)
      assert.isTrue(yield* hears(connection, agentSubject(one, "*")))
    }).pipe(Effect.scoped),
  )

  it.effect("cannot read the log", () =>
    Effect.gen(function* () {
      const { connection } = yield* entered(one)
      const pending = Effect.tryPromise(() => jetstreamManager(connection, { timeout: 500 }))
      yield* Effect.flip(pending)
    }).pipe(Effect.scoped),
  )

  it.effect("is cut off when its worker goes, and the others are not", () =>
    Effect.gen(function* () {
      const [gone, stays] = [yield* entered(one), yield* entered(other)]
      const status = gone.connection.status()[Symbol.asyncIterator]()
      yield* (yield* usersOf).dismiss(one)
      const cut = yield* Effect.promise(() => status.next())
      assert.include(["disconnect", "error"], cut.value?.type)
      assert.isTrue(yield* reaches(stays.connection, heartbeatSubject(other)))
    }).pipe(Effect.scoped, Effect.timeout(soon_ms)),
  )

  it.effect("cannot sign in without its key, and no file contains the key's seed", () =>
    Effect.gen(function* () {
      const { keys } = yield* entered(one)
      const { servers } = yield* NatsServer
      const stranger = yield* newWorkerKeys
      const refused = connectPlain({ servers, login: { seed: stranger.seed } })
      assert.equal((yield* Effect.flip(Effect.scoped(refused)))._tag, "NatsUnreachable")
      const conf = readFileSync(join((yield* DataFolder).nats, "nats.conf"), "utf8")
      assert.include(conf, keys.public_key)
      assert.notInclude(conf, Redacted.value(keys.seed))
    }).pipe(Effect.scoped),
  )

  it.effect("survives that its server is killed", () =>
    Effect.gen(function* () {
      const { connection } = yield* entered(one)
      const pid = yield* (yield* NatsServer).pid
      assert(pid !== undefined)
      process.kill(pid, "SIGKILL")
      yield* Stream.fromAsyncIterable(connection.status(), String).pipe(
        Stream.filter(({ type }) => type === "reconnect"),
        Stream.take(1),
        Stream.runDrain,
      )
      const back = Effect.filterOrFail(
        reaches(connection, heartbeatSubject(one)),
        (is_back) => is_back,
        () => "not yet",
      )
      yield* Effect.retry(back, { times: 100, schedule: Schedule.spaced(50) })
    }).pipe(Effect.scoped),
  )

  it.effect("is not made of what is no key", () =>
    Effect.gen(function* () {
      const { admit } = yield* usersOf
      for (const public_key of ["", "U", '" } ] }', `U${"A".repeat(55)}\n`, "SUAB"]) {
        const failure = yield* Effect.flip(admit(workerUser({ worker_id: one, public_key })))
        assert.include(failure.message, "not the public key")
      }
    }),
  )
})
