/** What is to be done for one blob: tables, over made-up responses. */
import assert from "node:assert/strict"
import { describe, it } from "vitest"
import type { Copy, HeldCopy } from "#actors/blob-storage/ports/node-engine.ts"
import type { BlobId } from "#schemas/blob-storage/blob.ts"
import { planFor } from "../../repair/plan.ts"
import type { Action, RepairView } from "../../repair/view.ts"

const hour_ns = 3_600_000_000_000n
const now = 100n * hour_ns
// 32 hex digits, as an identifier has them.
const id = "00".repeat(16) as BlobId
const nodes = ["a", "b", "c", "d", "e", "f", "g"]

/** The owners are the nodes by name. */
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
    ["an owner has none", { a: whole, b: none }, {}, ["push b"]],
    ["an owner does not answer", { a: whole }, {}, []],
    ["it came just now", { a: young, b: none }, {}, []],
    ["it came just now, and was hinted at", { a: young, b: none }, { sweep_number: 0 }, ["push b"]],
    [
      "it came from a clock that was set back",
      { a: held({ stored_at: now * 2n }), b: none },
      {},
      ["push b"],
    ],
    ["it is another's turn", { b: none, a: whole, c: whole }, { node_id: "c" }, []],
    [
      "its turn has come",
      { b: none, a: whole, c: whole },
      { node_id: "c", sweep_number: 2 },
      ["push b moved"],
    ],
    ["nobody's copy, young", { a: whole, b: whole, c: young }, { node_id: "c" }, []],
    ["nobody's copy, old", { a: whole, b: whole, c: whole }, { node_id: "c" }, ["release a b"]],
    ["nobody's copy, an owner is silent", { a: whole, c: whole }, { node_id: "c" }, []],
    ["nobody's copy, too few owners", { a: whole, c: whole }, { node_id: "c", active: ["a"] }, []],
    ["an owner was told to delete it", { a: whole, b: gone(old), c: none }, {}, ["push c"]],
    ["it was deleted before", { a: whole, b: gone(old - 1n) }, {}, ["push b"]],
    ["every node was to delete it", { a: whole, b: gone(old, true) }, {}, ["delete"]],
    ["an older one was deleted everywhere", { a: whole, b: gone(old - 1n, true) }, {}, ["push b"]],
    [
      "nothing is here, and it is hinted at",
      { a: none, b: whole, c: whole },
      { sweep_number: 0 },
      ["pull b c"],
    ],
    [
      "nothing is here, and it was deleted here",
      { a: gone(old), b: whole, c: whole },
      { sweep_number: 0 },
      [],
    ],
    ["nothing is anywhere", { a: none, b: none }, { sweep_number: 0 }, []],
    [
      "it leaves, and all is well",
      { a: whole, b: whole, c: young },
      { node_id: "c", is_leaving: true, active: ["a", "b"] },
      ["release a b"],
    ],
    [
      "it leaves, one is left",
      { a: whole, c: young },
      { node_id: "c", is_leaving: true, active: ["a"] },
      ["release a"],
    ],
    [
      "it leaves, and an owner has none",
      { a: whole, b: none, c: young },
      { node_id: "c", is_leaving: true, active: ["a", "b"], sweep_number: 2 },
      ["push b moved"],
    ],
    [
      "it leaves, and all refuse",
      { a: gone(now), c: whole },
      { node_id: "c", is_leaving: true, active: ["a"] },
      [],
    ],
    [
      "it leaves, and nobody is left",
      { c: whole },
      { node_id: "c", is_leaving: true, active: [] },
      [],
    ],
    [
      "an owner has an older put's",
      { a: held({ created_at: old - 1n }), b: whole, c: whole },
      { node_id: "c" },
      [],
    ],
    [
      "an owner has an older put's, and it is its turn",
      { a: held({ created_at: old - 1n }), b: whole, c: whole },
      { node_id: "b" },
      ["renew a"],
    ],
    ["it has an older put's", { a: held({ created_at: old - 1n }), b: whole }, {}, ["renew a"]],
    [
      "it has an older put's, and leaves",
      { a: whole, c: held({ created_at: old - 1n }) },
      { all_online_since: none, node_id: "c", is_leaving: true, active: ["a"] },
      ["renew c"],
    ],
    [
      "it has an older put's, and a deletion came between",
      { a: held({ created_at: old - 2n }), b: whole, c: gone(old - 1n, true) },
      {},
      ["renew a"],
    ],
    [
      "it has an older put's, and a deletion came after both",
      { a: held({ created_at: old - 2n }), b: whole, c: gone(old, true) },
      {},
      ["delete"],
    ],
    [
      "nobody's copy, of an older put than an owner's",
      { a: whole, b: whole, c: held({ created_at: old - 1n }) },
      { node_id: "c" },
      ["renew c"],
    ],
    ["it is to be in shards", { a: held({ policy: "REPLICATION_POLICY_EC42" }), b: none }, {}, []],
  ]
  for (const [sentence, responses, more, actions] of rows) {
    it(sentence, () => assert.deepEqual(planned(responses, more), actions))
  }
  it("counts what owners lack, and knows what it does not know", () => {
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
  /** Shards by node, in its order; undefined has none, "?" does not answer. */
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
    ["two are lost, another's turn", at(0, 1, none, 3, none, 5, none), { node_id: "b" }, []],
    [
      "two are lost, its turn has come",
      at(0, 1, none, 3, none, 5, none),
      { node_id: "b", sweep_number: 2 },
      ["rebuild 2c 4e"],
    ],
    ["three are lost", at(0, none, none, none, 4, 5, none), { all_online_since: none }, []],
    ["one is lost, and one is silent", at(0, 1, none, "?", 4, 5, none), {}, []],
    [
      "one is lost, and one is silent for long",
      at(0, 1, none, "?", 4, 5, none),
      { sweep_number: 3 },
      ["rebuild 2c"],
    ],
    ["a node is silent that is no owner", at(0, 1, none, 3, 4, 5, "?"), {}, ["rebuild 2c"]],
    [
      "no owner has what this one has",
      at(0, 1, none, 3, 4, 5, 2),
      { node_id: "g" },
      ["push c moved"],
    ],
    ["another has to move it", at(0, 1, none, 3, 4, 5, 2), {}, []],
    ["another has the same, before it", at(0, 1, 2, 3, 4, 2, 5), { node_id: "f" }, ["release c"]],
    ["another has the same, behind it", at(0, 1, 2, 3, 4, 2, 5), { node_id: "c" }, []],
    ["nobody's shard", at(0, 1, 2, 3, 4, 5, 5), { node_id: "g" }, ["release a b c d e f"]],
    ["nobody's shard, an owner is silent", at(0, 1, "?", 3, 4, 5, 5), { node_id: "g" }, []],
    ["nobody's shard, two owners have the same", at(0, 1, 2, 3, 4, 4, 5), { node_id: "g" }, []],
    [
      "it leaves with what nobody takes",
      at(0, 1, 2, 3, 4, "?", 5),
      { node_id: "g", is_leaving: true, active: nodes.slice(0, 5) },
      ["release a b c d e"],
    ],
    [
      "it leaves, and too few are left",
      at(0, 1, 2, "?", "?", "?", 5),
      { node_id: "g", is_leaving: true, active: nodes.slice(0, 3) },
      [],
    ],
    [
      "it leaves, and one has room",
      at(0, 1, 2, 3, none, "?", 5),
      { node_id: "g", is_leaving: true, active: nodes.slice(0, 5) },
      [],
    ],
    ["no put finished it", at(0, 1, 2, none, none, none, none), {}, ["discard"]],
    ["no put finished it, and somebody is silent", at(0, 1, 2, none, none, none, "?"), {}, []],
    [
      "no put finished it, and somebody is away",
      at(0, 1, 2, none, none, none, none),
      { all_online_since: none },
      [],
    ],
    [
      "no put finished it, and somebody was away",
      at(0, 1, 2, none, none, none, none),
      { all_online_since: old },
      [],
    ],
    [
      "no put finished it, and it is young",
      at(0, 1, 2, none, none, none, none),
      { now: old + hour_ns - 1n },
      [],
    ],
    [
      "every node was to delete it",
      { ...at(0, 1, 2, 3, 4, 5), g: gone(old, true) },
      {},
      ["delete"],
    ],
    ["a whole copy is as good as a shard", { ...at(0, 1, 2, 3, 4), f: held(), g: none }, {}, []],
    [
      "the same shard before another is of an older put",
      { ...at(0, 1, 2, 3, 4, 2, 5), c: shard(2, { created_at: old - 1n }) },
      {},
      ["renew c"],
    ],
    [
      "the same shard before it is of an older put",
      { ...at(0, 1, 2, 3, 4, 2, 5), c: shard(2, { created_at: old - 1n }) },
      { all_online_since: none, node_id: "f" },
      [],
    ],
    [
      "its shard is of an older put, and there are enough",
      { ...at(0, 1, 2, 3, 4, 5), a: shard(0, { created_at: old - 1n }), g: none },
      { all_online_since: none },
      ["renew a"],
    ],
    [
      "its shard is of an older put, and is needed",
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
      "nobody's shard, and an owner has an older put's",
      { ...at(0, 1, 2, 3, 4, 5, 5), a: shard(0, { created_at: old - 1n }) },
      { all_online_since: none, node_id: "g" },
      [],
    ],
    ["a whole copy beside all shards", { ...at(0, 1, 2, 3, 4, 5), g: held() }, {}, []],
    [
      "its own is whole, beside all shards",
      { ...at(0, 1, 2, 3, 4, 5), g: held() },
      { node_id: "g" },
      ["release a b c d e f"],
    ],
    [
      "its own is whole, and beside it a shard is missing",
      { ...at(0, 1, 2, 3, 4, none), g: held() },
      { node_id: "g" },
      [],
    ],
    [
      "its own is an owner's whole one, beside shards",
      { ...at(none, 1, 2, 3, 4, 5, none), a: held() },
      {},
      [],
    ],
    ["too few shards beside a whole copy", { ...at(0, 1, 2), g: held() }, { active: nodes }, []],
    [
      "too few shards beside a whole copy, and everybody says so",
      { ...at(0, 1, 2, none, none, none), g: held() },
      {},
      ["discard"],
    ],
    [
      "hinted at, nothing here, and a whole copy beside the shards",
      { ...at(none, 1, 2, 3, 4, 5), g: held() },
      { sweep_number: 0 },
      ["rebuild 0a"],
    ],
    ["hinted at, nothing here", at(none, 1, 2, 3, 4, 5, none), { sweep_number: 0 }, ["rebuild 0a"]],
  ]
  for (const [sentence, responses, more, actions] of rows) {
    it(sentence, () => assert.deepEqual(planned(responses, more), actions))
  }
  for (const [responses, count, is_last] of [
    [at(0, 1, 2, 3, 4, "?", 5), 5, false],
    [at(0, 1, 2, 3, "?", "?", 5), 4, true],
  ] as const) {
    it(`has ${count} others ${is_last ? "" : "not "}read theirs before it leaves`, () => {
      const leaving = { node_id: "g", is_leaving: true, active: nodes.slice(0, count) }
      const { actions } = planFor(view(leaving), new Map(Object.entries(responses)))
      assert.deepEqual(
        actions.map((action) => action.kind === "release" && action.is_last),
        [is_last],
      )
    })
  }
})
