import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Layer, Stream } from "effect"
import { TestClock } from "effect/testing"
import { Cluster, loadCluster } from "#actors/blob-storage/cluster.ts"
import { sendHeartbeats } from "#actors/blob-storage/heartbeat.ts"
import { type Heartbeat, LiveNodes, makeLiveNodes } from "#actors/blob-storage/ports/live-nodes.ts"
import { no_progress } from "#actors/blob-storage/ports/repair-progress.ts"
import { watchdog } from "#actors/blob-storage/watchdog.ts"
import { address, Commands, Unavailable } from "#actors/commands.ts"
import { host } from "#actors/host.ts"
import { runProcess } from "#actors/process.ts"
import { timer } from "#actors/timer.ts"
import { NodeRemoved } from "#events/blob-storage/cluster.ts"
import { Log } from "#events/log.ts"
import { logMemory } from "#journal"
import { JoinNode, LeaveNode, nodes_max } from "#schemas/blob-storage/cluster.ts"
import { NodeId } from "#schemas/blob-storage/node.ts"

const a = NodeId.make("node-a")
const b = NodeId.make("node-b")
const where = { address: "10.0.0.1:9797", capacity_bytes: "1000", vnodes_per_node: 128 }
const cluster = "almanac"
const app = Layer.mergeAll(host, LiveNodes.memory).pipe(Layer.provideMerge(logMemory))

let sent = 0
const send = Effect.fnUntraced(function* (command: Parameters<typeof Cluster.decide>[1]) {
  const origin = { command_id: `test-${++sent}`, actor: "test", at: "1970-01-01T00:00:00.000Z" }
  return yield* (yield* Commands).send(origin, address(Cluster, cluster, command))
})
const join = (node_id: NodeId) => send(JoinNode.make({ node_id, ...where }))

const beat = Effect.fnUntraced(function* (node_id: NodeId) {
  yield* (yield* LiveNodes).publish({ node_id, used_bytes: 1n, blob_count: 1n })
})

const states = Effect.gen(function* () {
  const known = yield* loadCluster(yield* Log, cluster)
  return Object.fromEntries(known?.nodes.map(({ node_id, state }) => [node_id, state]) ?? [])
})

const happened = Effect.gen(function* () {
  const commits = yield* Stream.runCollect((yield* Log).read(`blob-storage.cluster.${cluster}`))
  return commits.flatMap(({ commit }) => commit.events)
})

/** Advances the clock in small steps so that timers fire in between. */
const pass = Effect.fnUntraced(function* (seconds: number) {
  for (let i = 0; i < seconds; i++) {
    yield* TestClock.adjust("1 seconds")
    for (let i = 0; i < 20; i++) yield* Effect.yieldNow
  }
})

const options = { cluster, heartbeat_deadline_seconds: 15, remove_after_seconds: 3600 }
const watch = (fence: number) => Effect.forkChild(watchdog({ ...options, fence }))

describe("the watchdog", () => {
  it.effect("marks a node offline that says nothing for the deadline, and only that one", () =>
    Effect.gen(function* () {
      yield* join(a)
      yield* join(b)
      yield* watch(1)
      yield* pass(10)
      yield* beat(b)
      yield* pass(4)
      assert.deepEqual(yield* states, { "node-a": "active", "node-b": "active" })
      yield* pass(1)
      assert.deepEqual(yield* states, { "node-a": "offline", "node-b": "active" })
      yield* pass(9)
      assert.deepEqual(yield* states, { "node-a": "offline", "node-b": "active" })
      yield* pass(1)
      assert.deepEqual(yield* states, { "node-a": "offline", "node-b": "offline" })
    }).pipe(Effect.provide(app)),
  )

  it.effect("leaves a node alone that beats, for as long as it does", () =>
    Effect.gen(function* () {
      yield* join(a)
      yield* watch(1)
      for (let i = 0; i < 10; i++) {
        yield* beat(a)
        yield* pass(14)
      }
      assert.deepEqual(yield* states, { "node-a": "active" })
    }).pipe(Effect.provide(app)),
  )

  it.effect("grants a full deadline when it takes over, and to a node that joins later", () =>
    Effect.gen(function* () {
      yield* join(a)
      yield* beat(a)
      yield* pass(100)
      yield* watch(1)
      yield* pass(14)
      assert.deepEqual(yield* states, { "node-a": "active" })
      yield* join(b)
      yield* pass(1)
      assert.deepEqual(yield* states, { "node-a": "offline", "node-b": "active" })
      yield* pass(13)
      assert.deepEqual(yield* states, { "node-a": "offline", "node-b": "active" })
      yield* pass(1)
      assert.deepEqual(yield* states, { "node-a": "offline", "node-b": "offline" })
    }).pipe(Effect.provide(app)),
  )

  it.effect("grants a full deadline to a node that is back", () =>
    Effect.gen(function* () {
      yield* join(a)
      yield* watch(1)
      yield* pass(20)
      yield* join(a)
      yield* pass(14)
      assert.deepEqual(yield* states, { "node-a": "active" })
      yield* pass(1)
      assert.deepEqual(yield* states, { "node-a": "offline" })
    }).pipe(Effect.provide(app)),
  )

  it.effect("is refused once another with a higher number has spoken", () =>
    Effect.gen(function* () {
      yield* join(a)
      const first = yield* watch(9)
      yield* pass(15)
      yield* Fiber.interrupt(first)
      yield* join(a)
      yield* watch(8)
      yield* pass(60)
      assert.deepEqual(yield* states, { "node-a": "active" })
      yield* watch(10)
      yield* pass(15)
      assert.deepEqual(yield* states, { "node-a": "offline" })
    }).pipe(Effect.provide(app)),
  )

  it.effect("says nothing of nodes that are leaving", () =>
    Effect.gen(function* () {
      yield* join(a)
      yield* send(LeaveNode.make({ node_id: a, graceful: true }))
      yield* watch(1)
      yield* pass(60)
      assert.deepEqual(yield* states, { "node-a": "leaving" })
    }).pipe(Effect.provide(app)),
  )

  it.effect("and the timer together remove a node that stays silent", () =>
    Effect.gen(function* () {
      yield* join(a)
      yield* watch(1)
      yield* Effect.forkChild(runProcess(timer("blob-storage", [Cluster])))
      yield* pass(15)
      assert.deepEqual(yield* states, { "node-a": "offline" })
      yield* TestClock.adjust("3599 seconds")
      assert.deepEqual(yield* states, { "node-a": "offline" })
      yield* pass(1)
      assert.deepEqual(yield* states, {})
      const last = { ...(yield* happened).at(-1) }
      const at = "1970-01-01T01:00:15.000Z"
      const removed = NodeRemoved.make({ node_id: a, reason: "offline_too_long", at })
      assert.deepEqual(last, { ...removed })
    }).pipe(Effect.provide(app)),
  )
})

const usage = { used_bytes: 12n, blob_count: 3n }
const beating = (
  node_id: NodeId,
  holds: Effect.Effect<Omit<Heartbeat, "node_id">> = Effect.succeed(usage),
) =>
  Effect.forkChild(
    sendHeartbeats({
      cluster,
      node: { node_id, ...where },
      heartbeat_interval_seconds: 5,
      usage: holds,
    }),
  )

describe("a node's heart", () => {
  it.effect("joins, reports the node's contents, and keeps it active", () =>
    Effect.gen(function* () {
      yield* watch(1)
      yield* beating(a)
      yield* pass(1)
      assert.deepEqual(yield* states, { "node-a": "active" })
      const heard = (yield* LiveNodes).find(a)
      assert.deepEqual(heard, { node_id: a, ...usage, received_at: 0 })
      yield* pass(100)
      assert.deepEqual(yield* states, { "node-a": "active" })
      assert.equal((yield* LiveNodes).find(a)?.received_at, 100_000)
      assert.lengthOf(yield* happened, 3)
    }).pipe(Effect.provide(app)),
  )

  it.effect("brings the node back that was marked offline", () =>
    Effect.gen(function* () {
      yield* join(a)
      yield* watch(1)
      yield* pass(15)
      assert.deepEqual(yield* states, { "node-a": "offline" })
      yield* beating(a)
      yield* pass(1)
      assert.deepEqual(yield* states, { "node-a": "active" })
    }).pipe(Effect.provide(app)),
  )

  it.effect("revives the node by a heartbeat when it had only been slow", () =>
    Effect.gen(function* () {
      yield* beating(a)
      yield* pass(1)
      const { record, find } = makeLiveNodes()
      const deaf = LiveNodes.of({ publish: record, find })
      const dog = yield* Effect.forkChild(
        Effect.provideService(watchdog({ ...options, fence: 1 }), LiveNodes, deaf),
      )
      yield* pass(17)
      yield* Fiber.interrupt(dog)
      yield* pass(5)
      assert.deepEqual(yield* states, { "node-a": "active" })
      assert.deepEqual(
        (yield* happened).slice(3).map(({ type }) => type),
        ["NodeWentOffline", "NodeRevived"],
      )
    }).pipe(Effect.provide(app)),
  )

  it.effect("beats on after a beat that broke", () =>
    Effect.gen(function* () {
      yield* watch(1)
      let beats = 0
      const broken = Effect.suspend(() =>
        ++beats === 2 ? Effect.die("broken") : Effect.succeed(usage),
      )
      yield* beating(a, broken)
      yield* pass(60)
      assert.deepEqual(yield* states, { "node-a": "active" })
      assert.equal((yield* LiveNodes).find(a)?.received_at, 60_000)
    }).pipe(Effect.provide(app)),
  )

  it.effect("joins after a join that broke", () =>
    Effect.gen(function* () {
      const commands = yield* Commands
      let sent = 0
      const broken = Commands.of({
        send: (...args) => (++sent === 1 ? Effect.die("broken") : commands.send(...args)),
      })
      yield* Effect.provideService(beating(a), Commands, broken)
      yield* pass(5)
      assert.deepEqual(yield* states, { "node-a": "active" })
    }).pipe(Effect.provide(app)),
  )

  it.effect("joins again when the node was removed", () =>
    Effect.gen(function* () {
      yield* beating(a)
      yield* pass(1)
      yield* send(LeaveNode.make({ node_id: a, graceful: false }))
      assert.deepEqual(yield* states, {})
      yield* pass(5)
      assert.deepEqual(yield* states, { "node-a": "active" })
    }).pipe(Effect.provide(app)),
  )

  it.effect("ends a graceful leave of a node that holds nothing, and stays away", () =>
    Effect.gen(function* () {
      yield* beating(a, Effect.succeed({ used_bytes: 0n, blob_count: 0n }))
      yield* pass(1)
      yield* send(LeaveNode.make({ node_id: a, graceful: true }))
      yield* pass(5)
      assert.deepEqual(yield* states, {})
      yield* pass(30)
      assert.deepEqual(yield* states, {})
    }).pipe(Effect.provide(app)),
  )

  it.effect("keeps a leaving node leaving while it holds blobs", () =>
    Effect.gen(function* () {
      yield* beating(a)
      yield* pass(1)
      yield* send(LeaveNode.make({ node_id: a, graceful: true }))
      yield* pass(30)
      assert.deepEqual(yield* states, { "node-a": "leaving" })
    }).pipe(Effect.provide(app)),
  )

  it.effect("keeps a leaving node leaving while it has something to move yet", () =>
    Effect.gen(function* () {
      let pending_migrations = 1n
      const heartbeat = Effect.sync(() => ({
        used_bytes: 0n,
        blob_count: 0n,
        progress: { ...no_progress, pending_migrations },
      }))
      yield* beating(a, heartbeat)
      yield* pass(1)
      yield* send(LeaveNode.make({ node_id: a, graceful: true }))
      yield* pass(30)
      assert.deepEqual(yield* states, { "node-a": "leaving" })
      pending_migrations = 0n
      yield* pass(30)
      assert.deepEqual(yield* states, {})
    }).pipe(Effect.provide(app)),
  )

  it.effect("waits for a log out of reach", () =>
    Effect.gen(function* () {
      const commands = yield* Commands
      let reachable = false
      const down = Commands.of({
        send: (...sent) =>
          reachable ? commands.send(...sent) : Effect.fail(new Unavailable({ detail: "down" })),
      })
      yield* Effect.provideService(beating(a), Commands, down)
      yield* pass(10)
      assert.deepEqual(yield* states, {})
      reachable = true
      yield* pass(1)
      assert.deepEqual(yield* states, { "node-a": "active" })
    }).pipe(Effect.provide(app)),
  )
})

describe("live values", () => {
  it.effect("are bounded: the node that was silent longest is forgotten first", () =>
    Effect.gen(function* () {
      const { record, find } = makeLiveNodes()
      const heard_max = 2 * nodes_max
      const id = (n: number) => NodeId.make(`n${n}`)
      for (let n = 0; n < heard_max; n++) yield* record({ node_id: id(n), ...usage })
      yield* record({ node_id: id(0), ...usage })
      yield* record({ node_id: id(heard_max), ...usage })
      assert.isDefined(find("n0"))
      assert.isUndefined(find("n1"))
      assert.isDefined(find(`n${heard_max}`))
    }),
  )
})
