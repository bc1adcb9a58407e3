import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Layer, Stream } from "effect"
import { Cluster } from "#actors/blob-storage/cluster.ts"
import { recordAll } from "#actors/blob-storage/journal.ts"
import { Blobs } from "#actors/blob-storage/ports/engine.ts"
import { activeNodes, shortfall } from "#actors/blob-storage/shortfall.ts"
import { Volume } from "#actors/blob-storage/volume.ts"
import { address, Commands } from "#actors/commands.ts"
import { host } from "#actors/host.ts"
import { runProcess } from "#actors/process.ts"
import { verify } from "#actors/system/verification.ts"
import { memoryEngine } from "#adapters/blob-storage/memory/engine.ts"
import {
  BlobDeleted,
  BlobStored,
  ReplicationShortfallEnded,
  ReplicationShortfallStarted,
  type VolumeEvent,
} from "#events/blob-storage/volume.ts"
import { type Commit, Log, snapshot_bytes_max } from "#events/log.ts"
import { logMemory } from "#journal"
import { BlobId, ReplicationPolicy } from "#schemas/blob-storage/blob.ts"
import { type ClusterCommand, JoinNode, LeaveNode } from "#schemas/blob-storage/cluster.ts"
import { NodeId } from "#schemas/blob-storage/node.ts"
import { RecordFacts, RecordShortfall } from "#schemas/blob-storage/volume.ts"
import { put as putInto } from "../../contract/blob-storage/engine-bytes.ts"
import { given } from "../../world/given.ts"

const blob = {
  id: BlobId.make("00112233445566778899aabbccddeeff"),
  size: 100,
  checksum: "c2hhMjU2",
  at: "1763640000000000001",
  actor: "somebody",
  request_id: "request-1",
  correlation_id: "correlation-1",
} as const

type Name = "UNSPECIFIED" | "NONE" | "REPLICA2" | "REPLICA3" | "EC42" | "EC82"
const policyOf = (name: Name) => ReplicationPolicy.make(`REPLICATION_POLICY_${name}`)

const stored = (after: number, name: Name) =>
  BlobStored.make({ ...blob, policy: policyOf(name), after, cursor: after + 1 })
const deleted = (after: number, name: Name) =>
  BlobDeleted.make({ ...blob, policy: policyOf(name), after, cursor: after + 1 })
const started = (active_nodes: number, under_replicated: number) =>
  ReplicationShortfallStarted.make({ active_nodes, under_replicated })
const ended = (active_nodes: number, under_replicated = 0) =>
  ReplicationShortfallEnded.make({ active_nodes, under_replicated })
const active = (active_nodes: number) => RecordShortfall.make({ active_nodes })

const volume = given(Volume)

describe("a volume's shortfall", () => {
  const needs: ReadonlyArray<readonly [Name, number]> = [
    ["UNSPECIFIED", 3],
    ["REPLICA2", 2],
    ["REPLICA3", 3],
    ["EC42", 6],
    ["EC82", 10],
  ]
  for (const [name, needed] of needs) {
    it(`begins with a blob of ${name} where fewer than ${needed} nodes are active`, () => {
      volume(stored(0, name))
        .when(active(needed - 1))
        .thenEvents(started(needed - 1, 1))
      volume(stored(0, name)).when(active(needed)).thenEvents()
    })
  }
  it("never begins with blobs that ask for one copy", () =>
    volume(stored(0, "NONE")).when(active(1)).thenEvents())
  it("never begins in an empty volume", () => volume().when(active(1)).thenEvents())
  it("counts each blob that asks for more nodes, and no other", () =>
    volume(stored(0, "REPLICA3"), stored(1, "NONE"), stored(2, "REPLICA2"), stored(3, "REPLICA3"))
      .when(active(2))
      .thenEvents(started(2, 2)))
  it("is reported once, regardless of blobs that are stored or deleted meanwhile", () => {
    const short = [stored(0, "REPLICA3"), started(1, 1)]
    volume(...short)
      .when(active(1))
      .thenEvents()
    volume(...short, stored(1, "REPLICA3"), stored(2, "REPLICA2"), deleted(3, "REPLICA3"))
      .when(active(1))
      .thenEvents()
  })
  it("lasts while more nodes come but not enough", () =>
    volume(stored(0, "REPLICA3"), started(1, 1)).when(active(2)).thenEvents())
  it("ends when there are nodes enough", () =>
    volume(stored(0, "REPLICA3"), started(1, 1)).when(active(3)).thenEvents(ended(3)))
  it("ends with the last blob that asked for more nodes", () =>
    volume(stored(0, "REPLICA3"), stored(1, "NONE"), started(1, 1), deleted(2, "REPLICA3"))
      .when(active(1))
      .thenEvents(ended(1)))
  it("begins again after it ended", () =>
    volume(stored(0, "REPLICA3"), started(1, 1), ended(3))
      .when(active(2))
      .thenEvents(started(2, 1)))
  it("leaves the journal where it was: facts follow as before", () =>
    volume(stored(0, "REPLICA3"), started(1, 1))
      .when(
        RecordFacts.make({
          from: 1,
          to: 2,
          facts: [{ ...blob, policy: policyOf("NONE"), cursor: 2, kind: "stored" }],
        }),
      )
      .thenEvents(stored(1, "NONE")))
  it("cannot begin twice, nor end before it began", () => {
    const folded = (...events: ReadonlyArray<VolumeEvent>) =>
      events.reduce(Volume.evolve, Volume.initialState)
    assert.throws(() => folded(started(1, 1), started(1, 1)), /cannot happen/)
    assert.throws(() => folded(ended(3)), /cannot happen/)
    assert.throws(() => folded(started(1, 1), ended(3), ended(3)), /cannot happen/)
  })
  it("is in a snapshot that grows by the number of policies, and with nothing else", () => {
    const names = ["UNSPECIFIED", "NONE", "REPLICA2", "REPLICA3", "EC42", "EC82"] as const
    const events = Array.from({ length: 600 }, (_, n) => stored(n, names[n % 6] ?? "NONE"))
    const state = events.reduce<ReturnType<typeof Volume.evolve>>(
      Volume.evolve,
      Volume.initialState,
    )
    const text = JSON.stringify(Volume.save(state))
    assert.deepEqual(Volume.restore(JSON.parse(text))?.context, state.context)
    assert.lengthOf(Object.keys(state.context.policies), 5)
    assert.isBelow(text.length, 512)
    assert.isBelow(text.length, snapshot_bytes_max)
  })
})

const node = "node-1"
const cluster = "almanac"
const blobMemory = Layer.sync(Blobs, () => memoryEngine())
const app = Layer.mergeAll(host, blobMemory).pipe(Layer.provideMerge(logMemory))
const at = "2026-11-20T12:00:00.000Z"
const put = Effect.fnUntraced(function* (text: string, name: Name = "REPLICA3") {
  const blobs = yield* Blobs
  const policy = policyOf(name)
  const { id } = yield* Effect.promise(() =>
    putInto(blobs, new TextEncoder().encode(text), { policy }),
  )
  yield* recordAll(node)
  return id
})
const remove = Effect.fnUntraced(function* (id: BlobId) {
  const blobs = yield* Blobs
  yield* Effect.promise(() => blobs.delete(id, putInto.origin, 1000n))
  yield* recordAll(node)
})

let sent = 0
const send = Effect.fnUntraced(function* (command: ClusterCommand) {
  const command_id = `test-${++sent}`
  return yield* (yield* Commands).send(
    { command_id, actor: "test", at },
    address(Cluster, cluster, command),
  )
})
const where = { address: "10.0.0.1:9797", capacity_bytes: "1000", vnodes_per_node: 128 }
const join = (name: string) => send(JoinNode.make({ node_id: NodeId.make(name), ...where }))
const leave = (name: string) =>
  send(LeaveNode.make({ node_id: NodeId.make(name), graceful: false }))

const commits = Effect.gen(function* () {
  return yield* Stream.runCollect((yield* Log).read(`blob-storage.volume.${node}`))
})
const recordedEvents = Effect.map(commits, (commits) =>
  commits.flatMap(({ commit }) =>
    // A volume's stream holds only its events.
    (commit.events as ReadonlyArray<VolumeEvent>).flatMap((event) =>
      "cursor" in event ? [] : [{ ...event }],
    ),
  ),
)
const plain = (...events: ReadonlyArray<VolumeEvent>) => events.map((event) => ({ ...event }))

/** Waits until the process has handled all new events. */
const settled = Effect.gen(function* () {
  for (let i = 0; i < 100; i++) yield* Effect.yieldNow
})
const watching = Effect.forkChild(runProcess(shortfall({ cluster, node_id: node })))

describe("the shortfall's process", () => {
  it.effect("reports that blobs outnumber the nodes' copies, and that nodes join", () =>
    Effect.gen(function* () {
      yield* watching
      yield* join(node)
      yield* put("a", "NONE")
      yield* settled
      assert.deepEqual(yield* recordedEvents, [])
      yield* put("b")
      yield* settled
      for (const text of ["c", "d"]) yield* put(text)
      yield* settled
      assert.deepEqual(yield* recordedEvents, plain(started(1, 1)))
      yield* join("node-2")
      yield* settled
      assert.lengthOf(yield* recordedEvents, 1)
      yield* join("node-3")
      yield* settled
      assert.deepEqual(yield* recordedEvents, plain(started(1, 1), ended(3)))
      yield* leave("node-2")
      yield* settled
      assert.deepEqual((yield* recordedEvents).slice(2), plain(started(2, 3)))
    }).pipe(Effect.provide(app)),
  )

  it.effect("reports at its start a shortfall that arose meanwhile, only once", () =>
    Effect.gen(function* () {
      for (let i = 0; i < 20; i++) yield* put(`blob ${i}`)
      for (let i = 0; i < 20; i++) {
        const running = yield* watching
        for (let step = 0; step < i; step++) yield* Effect.yieldNow
        yield* Fiber.interrupt(running)
      }
      yield* watching
      yield* settled
      assert.deepEqual(yield* recordedEvents, plain(started(1, 20)))
    }).pipe(Effect.provide(app)),
  )

  it.effect("ends it when the last such blob is deleted", () =>
    Effect.gen(function* () {
      const ids = [yield* put("a"), yield* put("b")]
      yield* watching
      yield* settled
      for (const id of ids) yield* remove(id)
      yield* settled
      assert.deepEqual(yield* recordedEvents, plain(started(1, 2), ended(1)))
    }).pipe(Effect.provide(app)),
  )

  it.effect("looks at its own node and its own cluster only", () =>
    Effect.gen(function* () {
      yield* Effect.forkChild(runProcess(shortfall({ cluster, node_id: "node-9" })))
      yield* Effect.forkChild(runProcess(shortfall({ cluster: "another", node_id: node })))
      for (const name of [node, "node-2", "node-3"]) yield* join(name)
      yield* put("a")
      yield* settled
      assert.deepEqual(yield* recordedEvents, plain(started(1, 1)))
      assert.isUndefined(yield* (yield* Log).load("blob-storage.volume.node-9"))
    }).pipe(Effect.provide(app)),
  )

  it.effect("is not misled by what another node's volume has to say", () =>
    Effect.gen(function* () {
      yield* watching
      yield* put("a")
      yield* settled
      const policy = policyOf("NONE")
      const facts = [{ ...blob, policy, cursor: 1, kind: "stored" }] as const
      yield* (yield* Commands).send(
        { command_id: "of-another", actor: "node:node-2", at },
        address(Volume, "node-2", RecordFacts.make({ from: 0, to: 1, facts })),
      )
      yield* settled
      for (const name of [node, "node-2", "node-3"]) yield* join(name)
      yield* settled
      assert.deepEqual(yield* recordedEvents, plain(started(1, 1), ended(3)))
    }).pipe(Effect.provide(app)),
  )

  it.effect("names its cause, from which its command's id is made", () =>
    Effect.gen(function* () {
      const caused = Effect.fnUntraced(function* (cause: number | undefined) {
        yield* settled
        const last = (yield* commits).at(-1)?.commit
        assert.equal(last?.cause, String(cause))
        assert.equal(last?.actor, "process:blob-storage-shortfall")
        assert.equal(last?.commands.at(-1), `shortfall-${node}-${cause}`)
      })
      yield* put("a")
      const stored_at = (yield* commits).at(-1)?.position
      yield* watching
      yield* caused(stored_at)
      for (const name of [node, "node-2"]) yield* join(name)
      yield* caused(yield* join("node-3"))
    }).pipe(Effect.provide(app)),
  )

  it.effect("believes no older commit after a newer one", () =>
    Effect.gen(function* () {
      yield* watching
      yield* put("a")
      yield* settled
      for (const name of [node, "node-2", "node-3"]) yield* join(name)
      yield* settled
      assert.deepEqual(yield* recordedEvents, plain(started(1, 1), ended(3)))
      const all = yield* Stream.runCollect((yield* Log).read("blob-storage"))
      const { fold, due } = yield* shortfall({ cluster, node_id: node }).start
      for (const recorded of all) yield* fold(recorded)
      for (const recorded of all) {
        yield* fold(recorded)
        assert.deepEqual(due(0), { now: [] })
      }
    }).pipe(Effect.provide(app)),
  )

  it.effect("leaves the journal undisturbed: what the store did later is recorded, once", () =>
    Effect.gen(function* () {
      yield* watching
      for (const text of ["a", "b", "c"]) {
        yield* put(text)
        yield* settled
      }
      assert.equal(yield* recordAll(node), 3)
      const other = yield* Layer.build(Layer.fresh(blobMemory))
      const error = yield* Effect.flip(put("d")).pipe(Effect.provideContext(other))
      assert.equal(error._tag, "ForeignJournal")
    }).pipe(Effect.scoped, Effect.provide(app)),
  )
})

describe("the number of active nodes", () => {
  it("counts nodes on the ring only, and a node alone as one", () => {
    assert.equal(activeNodes([]), 1)
    const states = ["active", "leaving", "offline", "active", "joining"] as const
    assert.equal(activeNodes(states.map((state) => ({ state }))), 2)
    assert.equal(activeNodes([{ state: "leaving" }]), 1)
  })
})

/** A log as the first version of the volume wrote it: two blobs stored, one deleted. */
const old = Effect.gen(function* () {
  const log = yield* Log
  const stream = `blob-storage.volume.${node}`
  const events = [stored(0, "REPLICA3"), stored(1, "REPLICA2"), deleted(2, "REPLICA2")]
  let [expected, prev] = [0, log.hashOf(stream)]
  for (const [n, event] of events.entries()) {
    const blobs = [1, 2, 1][n]
    const context = { cursor: n + 1, blobs, bytes: (blobs ?? 0) * 100 }
    const commit: Commit = {
      v: 1,
      actor: "node:node-1",
      at,
      events: [event],
      prev,
      commands: [`facts-${n}`],
      snapshot: { machine: 1, value: "open", context },
    }
    const [appended] = yield* log.append([{ stream, expected, commit }])
    expected = appended?.position ?? 0
    prev = appended?.hash ?? ""
  }
})

describe("a log of the first version", () => {
  it.effect("is folded: the process reports a shortfall that was never reported", () =>
    Effect.gen(function* () {
      yield* old
      yield* watching
      yield* settled
      assert.deepEqual(yield* recordedEvents, plain(started(1, 1)))
      assert.deepEqual((yield* commits).at(-1)?.commit.snapshot, {
        machine: 2,
        value: "open",
        context: {
          cursor: 3,
          last: { id: blob.id, at: blob.at },
          blobs: 1,
          bytes: 100,
          policies: { REPLICATION_POLICY_REPLICA3: 1 },
          is_short: true,
        },
      })
    }).pipe(Effect.provide(app)),
  )

  it.effect("is followed by facts as before, and verifies as a whole", () =>
    Effect.gen(function* () {
      yield* old
      const commands = yield* Commands
      const facts = [{ ...blob, policy: policyOf("NONE"), cursor: 4, kind: "stored" }] as const
      yield* commands.send(
        { command_id: "facts-4", actor: "node:node-1", at },
        address(Volume, node, RecordFacts.make({ from: 3, to: 4, facts })),
      )
      yield* watching
      yield* settled
      const found = yield* verify({ deciders: [Volume, Cluster] })
      assert.deepEqual(found.faults, [])
      assert.equal(found.folded, found.commits)
      assert.equal(found.commits, 5)
    }).pipe(Effect.provide(app)),
  )
})
