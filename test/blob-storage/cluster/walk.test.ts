import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Schema } from "effect"
import { Cluster, type ClusterContext, eligible, machine } from "#actors/blob-storage/cluster.ts"
import { type ClusterEvent, NodeJoined } from "#events/blob-storage/cluster.ts"
import { commit_bytes_max, type Recorded, snapshot_bytes_max } from "#events/log.ts"
import { blueprint } from "#projections/blob-storage/blueprint.ts"
import { findCluster, listNodes } from "#projections/blob-storage/node.ts"
import { openDatabase, project } from "#projections/read-model.ts"
import { nodes_max } from "#schemas/blob-storage/cluster.ts"
import { NodeId } from "#schemas/blob-storage/node.ts"
import { sqlite } from "#sqlite"
import {
  activated,
  at,
  configured,
  eachEvent,
  offline,
} from "../../world/blob-storage/cluster-events.ts"
import { histories } from "../../world/histories.ts"
import { temporaryFolder } from "../../world/programs/nats.ts"

const bytesOf = (value: unknown) => new TextEncoder().encode(JSON.stringify(value)).length

describe("a full cluster", () => {
  it("with every field at its longest fits in a snapshot", () => {
    const longest = Array.from({ length: nodes_max }, (_, i) => {
      const node_id = NodeId.make(`${i}`.padEnd(64, "x"))
      const capacity_bytes = "18446744073709551615"
      const address = `${"h".repeat(122)}:65535`
      const joined = NodeJoined.make({ node_id, address, capacity_bytes, weight_percent: 1600 })
      return [joined, activated(node_id), offline(node_id, Number.MAX_SAFE_INTEGER)]
    }).flat()
    const events = [{ ...configured, capacity_unit_bytes: "18446744073709551615" }, ...longest]
    const state = events.reduce(Cluster.evolve, Cluster.initialState)
    assert.equal(state.context.nodes.length, nodes_max)
    assert.equal(state.context.nodes.at(-1)?.address.length, 128)
    assert.isBelow(bytesOf(Cluster.save(state)), snapshot_bytes_max)
  })
})

const histories_max = 2000

const committed = (history: ReadonlyArray<ClusterEvent>): Recorded => ({
  position: 1,
  stream: "blob-storage.cluster.almanac",
  hash: "",
  commit: {
    v: 1,
    actor: "test",
    at,
    events: history,
    commands: ["c"],
    prev: "",
    snapshot: Cluster.save(history.reduce(Cluster.evolve, Cluster.initialState)),
  },
})

describe("the cluster's read model", () => {
  it.effect(
    `agrees with the chart after each of its ${histories_max} shortest histories`,
    () =>
      Effect.gen(function* () {
        let walked = 0
        const database = yield* openDatabase(blueprint)
        for (const { state, history } of histories(machine, eachEvent, 8)) {
          if (++walked > histories_max) break
          const recorded = committed(history)
          const stream = `blob-storage.cluster.c${walked}`
          const named = { ...recorded, position: walked, stream }
          Effect.runSync(project(database, blueprint, [named]))
          const context: ClusterContext = state.context
          const rows = yield* listNodes(database.db, `c${walked}`)
          const found = yield* findCluster(database.db, `c${walked}`)
          const name = history.map(({ type }) => type).join(", ")
          assert.deepEqual(
            rows.map(
              ({ cluster: _, joined_at: _joined, state_changed_at: _changed, ...row }) => row,
            ),
            context.nodes.map(({ remove_at: _, ...node }) => node),
            name,
          )
          assert.equal(found?.ring_version, context.ring_version, name)
          assert.equal(found?.vnodes_per_node, context.vnodes_per_node, name)
          assert.isAtMost(bytesOf(recorded.commit.snapshot), snapshot_bytes_max)
          assert.isAtMost(bytesOf(recorded.commit), commit_bytes_max)
        }
        assert.isAbove(walked, histories_max)
      }).pipe(Effect.provide(Layer.unwrap(Effect.map(temporaryFolder, sqlite))), Effect.scoped),
    60_000,
  )

  it("is not asked of what the chart refuses: each history can be stored and restored", () => {
    let walked = 0
    for (const { state, history } of histories(machine, eachEvent, 8)) {
      if (++walked > histories_max) break
      const folded = history.reduce(Cluster.evolve, Cluster.initialState)
      const text = JSON.stringify(Cluster.save(folded))
      const restored = Cluster.restore(JSON.parse(text))
      assert.deepEqual(restored?.context, state.context)
      assert.deepEqual(eligible(restored?.context ?? state.context), eligible(state.context))
      for (const event of history) {
        assert.deepEqual(Schema.decodeUnknownSync(Cluster.event)(event), event)
      }
    }
  })
})
