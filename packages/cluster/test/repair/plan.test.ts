/** Repair plans for one blob: tables of made-up responses. */
import assert from "node:assert/strict"
import { describe, it } from "vitest"
import type { Copy, HeldCopy } from "#actors/blob-storage/ports/node-engine.ts"
import type { BlobId } from "#schemas/blob-storage/blob.ts"
import { planFor } from "../../repair/plan.ts"
import type { Action, RepairView } from "../../repair/view.ts"

const hour_ns = 3_600_000_000_000n
const now = 100n * hour_ns
// A BlobId has 32 hex digits.
const id = "00".repeat(16) as BlobId
const nodes = ["a", "b", "c", "d", "e", "f", "g"]

/** The owners are the nodes in order of their names. */
const view = (more: Partial<RepairView> = {}): RepairView => ({
  node_id: "a",
  active: nodes,
  leaving: [],
  is_leaving: false,
  now,
  sweep_number: 1,
  all_online_since: 0n,
  release_after_ns: hour_ns,
  ownersOf: (_, count) => (more.active ?? nodes).slice(0, count),
  ...more,
})

const old = now - 2n * hour_ns
const held = (more: Partial<HeldCopy> = {}): HeldCopy => ({
  kind: "whole",
  id,
  size: 100,
  checksum: "",
  policy: "REPLICATION_POLICY_REPLICA2",
  created_at: old,
  put_at: more.created_at ?? old,
  stored_at: old,
  shard: undefined,
  ...more,
})
const shard = (index: number, more: Partial<HeldCopy> = {}): HeldCopy =>
  held({
    kind: "shard",
    policy: "REPLICATION_POLICY_EC42",
    shard: { index, data_shards: 4 },
    ...more,
  })
const gone = (deleted_at: bigint, is_cluster_wide = false): Copy => ({
  kind: "tombstone",
  id,
  deleted_at,
  is_cluster_wide,
})

const textOf = (action: Action) => {
  if (action.kind === "push") return `push ${action.to}${action.is_migration ? " moved" : ""}`
  if (action.kind === "rebuild") {
    return `rebuild ${action.missing.map(({ index, node_id }) => `${index}${node_id}`).join(" ")}`
  }
  if (action.kind === "renew") return `renew ${action.node_id}`
  if (action.kind === "pull") return `pull ${action.from.join(" ")}`
  return action.kind === "release" ? `release ${action.keepers.join(" ")}`.trim() : action.kind
}

const planned = (responses: Record<string, Copy | undefined>, more: Partial<RepairView> = {}) =>
  planFor(view(more), new Map(Object.entries(responses))).actions.map(textOf)

const none = undefined

describe("the plan for a replicated blob", () => {
  const whole = held()
  const young = held({ stored_at: now - 1n })
  const rows: ReadonlyArray<
    readonly [string, Record<string, Copy | undefined>, Partial<RepairView>, ReadonlyArray<string>]
  > = [
    ["all is well", { a: whole, b: whole }, {}, []],
    ["an owner lacks a copy", { a: whole, b: none }, {}, ["push b"]],
    ["an owner does not respond", { a: whole }, {}, []],
    ["it was just put", { a: young, b: none }, {}, []],
    ["it was just put, and hinted", { a: young, b: none }, { sweep_number: 0 }, ["push b"]],
    [
      "the clock was set back since the put",
      { a: held({ stored_at: now * 2n }), b: none },
      {},
      ["push b"],
    ],
    ["another node's turn", { b: none, a: whole, c: whole }, { node_id: "c" }, []],
    [
      "this node's turn",
      { b: none, a: whole, c: whole },
      { node_id: "c", sweep_number: 2 },
      ["push b moved"],
    ],
    ["misplaced copy, recent", { a: whole, b: whole, c: young }, { node_id: "c" }, []],
    ["misplaced copy, old", { a: whole, b: whole, c: whole }, { node_id: "c" }, ["release a b"]],
    ["misplaced copy, an owner does not respond", { a: whole, c: whole }, { node_id: "c" }, []],
    ["misplaced copy, too few owners", { a: whole, c: whole }, { node_id: "c", active: ["a"] }, []],
    ["an owner has deleted it", { a: whole, b: gone(old), c: none }, {}, ["push c"]],
    ["deleted before the put", { a: whole, b: gone(old - 1n) }, {}, ["push b"]],
    ["deleted cluster-wide", { a: whole, b: gone(old, true) }, {}, ["delete"]],
    [
      "an older put was deleted cluster-wide",
      { a: whole, b: gone(old - 1n, true) },
      {},
      ["push b"],
    ],
    ["no local copy, hinted", { a: none, b: whole, c: whole }, { sweep_number: 0 }, ["pull b c"]],
    [
      "no local copy, deleted locally",
      { a: gone(old), b: whole, c: whole },
      { sweep_number: 0 },
      [],
    ],
    ["no copy anywhere", { a: none, b: none }, { sweep_number: 0 }, []],
    [
      "leaving, all is well",
      { a: whole, b: whole, c: young },
      { node_id: "c", is_leaving: true, active: ["a", "b"] },
      ["release a b"],
    ],
    [
      "leaving, one other copy",
      { a: whole, c: young },
      { node_id: "c", is_leaving: true, active: ["a"] },
      ["release a"],
    ],
    [
      "leaving, an owner lacks a copy",
      { a: whole, b: none, c: young },
      { node_id: "c", is_leaving: true, active: ["a", "b"], sweep_number: 2 },
      ["push b moved"],
    ],
    [
      "leaving, all refuse",
      { a: gone(now), c: whole },
      { node_id: "c", is_leaving: true, active: ["a"] },
      [],
    ],
    ["leaving, no other node", { c: whole }, { node_id: "c", is_leaving: true, active: [] }, []],
    [
      "an owner has a copy of an older put",
      { a: held({ created_at: old - 1n }), b: whole, c: whole },
      { node_id: "c" },
      [],
    ],
    [
      "an owner has a copy of an older put, this node's turn",
      { a: held({ created_at: old - 1n }), b: whole, c: whole },
      { node_id: "b" },
      ["renew a"],
    ],
    [
      "the local copy is of an older put",
      { a: held({ created_at: old - 1n }), b: whole },
      {},
      ["renew a"],
    ],
    [
      "the local copy is of an older put, leaving",
      { a: whole, c: held({ created_at: old - 1n }) },
      { all_online_since: none, node_id: "c", is_leaving: true, active: ["a"] },
      ["renew c"],
    ],
    [
      "the local copy is of an older put, deletion in between",
      { a: held({ created_at: old - 2n }), b: whole, c: gone(old - 1n, true) },
      {},
      ["renew a"],
    ],
    [
      "the local copy is of an older put, deletion after both",
      { a: held({ created_at: old - 2n }), b: whole, c: gone(old, true) },
      {},
      ["delete"],
    ],
    [
      "misplaced copy of an older put",
      { a: whole, b: whole, c: held({ created_at: old - 1n }) },
      { node_id: "c" },
      ["renew c"],
    ],
    [
      "the policy is an erasure code",
      { a: held({ policy: "REPLICATION_POLICY_EC42" }), b: none },
      {},
      [],
    ],
  ]
  for (const [sentence, responses, more, actions] of rows) {
    it(sentence, () => assert.deepEqual(planned(responses, more), actions))
  }
  it("counts missing copies, and nodes that did not respond", () => {
    const plan = (responses: Record<string, Copy | undefined>) =>
      planFor(view(), new Map(Object.entries(responses)))
    assert.deepEqual(
      [{ a: whole, b: none }, { a: whole, b: whole }, { a: whole }, { a: young, b: none }].map(
        (responses) => {
          const { gaps, is_known, is_early, is_displaced } = plan(responses)
          return [gaps, is_known, is_early, is_displaced]
        },
      ),
      [
        [1, true, false, false],
        [0, true, false, false],
        [0, false, false, false],
        [0, true, true, false],
      ],
    )
  })
})

describe("the plan for an erasure coded blob", () => {
  /** Shards by node, in order; undefined: no shard, "?": no response. */
  const at = (...indexes: ReadonlyArray<number | undefined | "?">) =>
    Object.fromEntries(
      indexes.flatMap((index, n) =>
        index === "?" ? [] : [[nodes[n] ?? "", index === undefined ? none : shard(index)] as const],
      ),
    )
  const rows: ReadonlyArray<
    readonly [string, Record<string, Copy | undefined>, Partial<RepairView>, ReadonlyArray<string>]
  > = [
    ["all is well", at(0, 1, 2, 3, 4, 5, none), {}, []],
    ["two are lost", at(0, 1, none, 3, none, 5, none), {}, ["rebuild 2c 4e"]],
    ["two are lost, another node's turn", at(0, 1, none, 3, none, 5, none), { node_id: "b" }, []],
    [
      "two are lost, this node's turn",
      at(0, 1, none, 3, none, 5, none),
      { node_id: "b", sweep_number: 2 },
      ["rebuild 2c 4e"],
    ],
    ["three are lost", at(0, none, none, none, 4, 5, none), { all_online_since: none }, []],
    ["one is lost, one does not respond", at(0, 1, none, "?", 4, 5, none), {}, []],
    [
      "one is lost, one has not responded for long",
      at(0, 1, none, "?", 4, 5, none),
      { sweep_number: 3 },
      ["rebuild 2c"],
    ],
    ["a node that is no owner does not respond", at(0, 1, none, 3, 4, 5, "?"), {}, ["rebuild 2c"]],
    ["no owner has this shard", at(0, 1, none, 3, 4, 5, 2), { node_id: "g" }, ["push c moved"]],
    ["another node must move it", at(0, 1, none, 3, 4, 5, 2), {}, []],
    [
      "another owner before it has the same shard",
      at(0, 1, 2, 3, 4, 2, 5),
      { node_id: "f" },
      ["release c"],
    ],
    ["another owner after it has the same shard", at(0, 1, 2, 3, 4, 2, 5), { node_id: "c" }, []],
    ["misplaced shard", at(0, 1, 2, 3, 4, 5, 5), { node_id: "g" }, ["release a b c d e f"]],
    ["misplaced shard, an owner does not respond", at(0, 1, "?", 3, 4, 5, 5), { node_id: "g" }, []],
    ["misplaced shard, two owners have the same", at(0, 1, 2, 3, 4, 4, 5), { node_id: "g" }, []],
    [
      "leaving, no owner needs its shard",
      at(0, 1, 2, 3, 4, "?", 5),
      { node_id: "g", is_leaving: true, active: nodes.slice(0, 5) },
      ["release a b c d e"],
    ],
    [
      "leaving, too few other shards",
      at(0, 1, 2, "?", "?", "?", 5),
      { node_id: "g", is_leaving: true, active: nodes.slice(0, 3) },
      [],
    ],
    [
      "leaving, one owner has room",
      at(0, 1, 2, 3, none, "?", 5),
      { node_id: "g", is_leaving: true, active: nodes.slice(0, 5) },
      [],
    ],
    ["unfinished put", at(0, 1, 2, none, none, none, none), {}, ["discard"]],
    ["unfinished put, a node does not respond", at(0, 1, 2, none, none, none, "?"), {}, []],
    [
      "unfinished put, a node is offline",
      at(0, 1, 2, none, none, none, none),
      { all_online_since: none },
      [],
    ],
    [
      "unfinished put, a node was offline",
      at(0, 1, 2, none, none, none, none),
      { all_online_since: old },
      [],
    ],
    [
      "unfinished put, recent",
      at(0, 1, 2, none, none, none, none),
      { now: old + hour_ns - 1n },
      [],
    ],
    ["deleted cluster-wide", { ...at(0, 1, 2, 3, 4, 5), g: gone(old, true) }, {}, ["delete"]],
    ["a whole copy counts as a shard", { ...at(0, 1, 2, 3, 4), f: held(), g: none }, {}, []],
    [
      "the same shard on an earlier owner is of an older put",
      { ...at(0, 1, 2, 3, 4, 2, 5), c: shard(2, { created_at: old - 1n }) },
      {},
      ["renew c"],
    ],
    [
      "the same shard on the owner before it is of an older put",
      { ...at(0, 1, 2, 3, 4, 2, 5), c: shard(2, { created_at: old - 1n }) },
      { all_online_since: none, node_id: "f" },
      [],
    ],
    [
      "the local shard is of an older put, and others suffice",
      { ...at(0, 1, 2, 3, 4, 5), a: shard(0, { created_at: old - 1n }), g: none },
      { all_online_since: none },
      ["renew a"],
    ],
    [
      "the local shard is of an older put, and is needed",
      {
        ...at(0, 1, 2, 3),
        a: shard(0, { created_at: old - 1n }),
        e: shard(4, { created_at: old - 1n }),
        f: shard(5, { created_at: old - 1n }),
        g: none,
      },
      { node_id: "b" },
      ["renew a", "renew e", "renew f"],
    ],
    [
      "misplaced shard, an owner's is of an older put",
      { ...at(0, 1, 2, 3, 4, 5, 5), a: shard(0, { created_at: old - 1n }) },
      { all_online_since: none, node_id: "g" },
      [],
    ],
    ["a whole copy and all shards", { ...at(0, 1, 2, 3, 4, 5), g: held() }, {}, []],
    [
      "a local whole copy and all shards",
      { ...at(0, 1, 2, 3, 4, 5), g: held() },
      { node_id: "g" },
      ["release a b c d e f"],
    ],
    [
      "a local whole copy, a shard is missing",
      { ...at(0, 1, 2, 3, 4, none), g: held() },
      { node_id: "g" },
      [],
    ],
    [
      "a local whole copy of an owner, and shards",
      { ...at(none, 1, 2, 3, 4, 5, none), a: held() },
      {},
      [],
    ],
    ["a whole copy and too few shards", { ...at(0, 1, 2), g: held() }, { active: nodes }, []],
    [
      "a whole copy and too few shards, all nodes respond",
      { ...at(0, 1, 2, none, none, none), g: held() },
      {},
      ["discard"],
    ],
    [
      "hinted, no local copy, a whole copy and shards",
      { ...at(none, 1, 2, 3, 4, 5), g: held() },
      { sweep_number: 0 },
      ["rebuild 0a"],
    ],
    ["hinted, no local shard", at(none, 1, 2, 3, 4, 5, none), { sweep_number: 0 }, ["rebuild 0a"]],
  ]
  for (const [sentence, responses, more, actions] of rows) {
    it(sentence, () => assert.deepEqual(planned(responses, more), actions))
  }
  for (const [responses, count, is_last] of [
    [at(0, 1, 2, 3, 4, "?", 5), 5, false],
    [at(0, 1, 2, 3, "?", "?", 5), 4, true],
  ] as const) {
    const verb = is_last ? "verifies" : "does not verify"
    it(`${verb} the copies of ${count} others before a leave`, () => {
      const leaving = { node_id: "g", is_leaving: true, active: nodes.slice(0, count) }
      const { actions } = planFor(view(leaving), new Map(Object.entries(responses)))
      assert.deepEqual(
        actions.map((action) => action.kind === "release" && action.is_last),
        [is_last],
      )
    })
  }
})
