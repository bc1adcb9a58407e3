/** The shortfall when repair reports its findings: it ends once all copies exist. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Stream, Struct } from "effect"
import { TestClock } from "effect/testing"
import { Cluster } from "#actors/blob-storage/cluster.ts"
import { type SweepFindings, shortfall } from "#actors/blob-storage/shortfall.ts"
import { Volume } from "#actors/blob-storage/volume.ts"
import { type Addressed, address, Commands } from "#actors/commands.ts"
import { host } from "#actors/host.ts"
import { runProcess } from "#actors/process.ts"
import {
  BlobStored,
  ReplicationShortfallEnded,
  ReplicationShortfallStarted,
  type VolumeEvent,
} from "#events/blob-storage/volume.ts"
import { Log } from "#events/log.ts"
import { logMemory } from "#journal"
import { BlobId } from "#schemas/blob-storage/blob.ts"
import { JoinNode } from "#schemas/blob-storage/cluster.ts"
import { NodeId } from "#schemas/blob-storage/node.ts"
import { RecordFacts, RecordShortfall, type VolumeFact } from "#schemas/blob-storage/volume.ts"
import { given } from "../../world/given.ts"

const node = "node-1"
const cluster = "almanac"
const app = host.pipe(Layer.provideMerge(logMemory))

const fact: VolumeFact = {
  cursor: 1,
  kind: "stored",
  id: BlobId.make("00112233445566778899aabbccddeeff"),
  size: 100,
  checksum: "c2hhMjU2",
  policy: "REPLICATION_POLICY_REPLICA3",
  at: "1763640000000000001",
  actor: "somebody",
  request_id: "r",
  correlation_id: "c",
}

const started = (active_nodes: number, under_replicated: number) =>
  ReplicationShortfallStarted.make({ active_nodes, under_replicated })
const ended = ReplicationShortfallEnded.make({ active_nodes: 3, under_replicated: 0 })

const send = Effect.fnUntraced(function* (command_id: string, addressed: Addressed<unknown>) {
  const at = "2026-11-22T12:00:00.000Z"
  yield* (yield* Commands).send({ command_id, actor: "test", at }, addressed)
})

const join = (name: string) => {
  const where = { address: "10.0.0.1:9797", capacity_bytes: "1000", vnodes_per_node: 128 }
  const command = JoinNode.make({ node_id: NodeId.make(name), ...where })
  return send(`join-${name}`, address(Cluster, cluster, command))
}

const recorded = Effect.gen(function* () {
  const commits = yield* Stream.runCollect((yield* Log).read(`blob-storage.volume.${node}`))
  // A volume's stream holds only its events.
  const events = commits.flatMap(({ commit }) => commit.events as ReadonlyArray<VolumeEvent>)
  return events.filter((event) => !("cursor" in event)).map((event) => ({ ...event }))
})
const plain = (...events: ReadonlyArray<VolumeEvent>) => events.map((event) => ({ ...event }))

const settled = Effect.gen(function* () {
  for (let i = 0; i < 100; i++) yield* Effect.yieldNow
})
/** Waits until the process has checked once more. */
const look = Effect.andThen(Effect.andThen(settled, TestClock.adjust(1000)), settled)

describe("a shortfall that the repair has looked into", () => {
  it.effect("ends when the copies were found, by the current ring", () =>
    Effect.gen(function* () {
      let found: SweepFindings | undefined
      const checked = () => found
      yield* Effect.forkChild(
        runProcess(shortfall({ cluster, node_id: node, lastFindings: checked })),
      )
      const facts = RecordFacts.make({ from: 0, to: 1, facts: [fact] })
      yield* send("facts", address(Volume, node, facts))
      yield* look
      assert.deepEqual(yield* recorded, plain(started(1, 1)))
      for (const name of [node, "node-2", "node-3"]) yield* join(name)
      yield* look
      found = { ring_version: 2, under_replicated: 0 }
      yield* look
      assert.lengthOf(yield* recorded, 1, "enough nodes, and no check since")
      found = { ring_version: 3, under_replicated: 1 }
      yield* look
      assert.lengthOf(yield* recorded, 1)
      found = { ring_version: 3, under_replicated: 0 }
      yield* look
      assert.deepEqual(yield* recorded, plain(started(1, 1), ended))
      found = { ring_version: 3, under_replicated: 7 }
      yield* look
      assert.deepEqual((yield* recorded).slice(2), plain(started(3, 7)))
    }).pipe(Effect.provide(app)),
  )
  it("counts those that were found to lack copies, if they are more", () => {
    const volume = given(Volume)
    const stored = BlobStored.make({ ...Struct.omit(fact, ["kind"]), after: 0 })
    const found = RecordShortfall.make({ active_nodes: 3, under_replicated: 2 })
    volume(stored).when(found).thenEvents(started(3, 2))
    volume(stored, started(1, 1)).when(found).thenEvents()
  })
})
