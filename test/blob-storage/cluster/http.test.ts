import { randomUUID } from "node:crypto"
import { assert, describe } from "@effect/vitest"
import { Effect } from "effect"
import { Cluster } from "#actors/blob-storage/cluster.ts"
import { LiveNodes } from "#actors/blob-storage/ports/live-nodes.ts"
import { Volume } from "#actors/blob-storage/volume.ts"
import { address, Commands } from "#actors/commands.ts"
import { Log } from "#events/log.ts"
import { BlobStorageModel } from "#projections/blob-storage/blueprint.ts"
import { BlobId, ReplicationPolicy } from "#schemas/blob-storage/blob.ts"
import { JoinNode, MarkNodeOffline, nodes_max } from "#schemas/blob-storage/cluster.ts"
import { NodeId } from "#schemas/blob-storage/node.ts"
import { RecordFacts, type VolumeFact } from "#schemas/blob-storage/volume.ts"
import { beat, isEnvelope, node, served, view } from "../../world/blob-storage/cluster-served.ts"

describe("join", () => {
  served("admits a node as active, and the ring's version rises", (ask) =>
    Effect.gen(function* () {
      const first = yield* ask("POST", "/v1/cluster/join", node)
      assert.equal(first.status, 200)
      assert.deepEqual(first.body, { accepted: true, ring_version: 1, nodes: [view()] })
      const second = yield* ask("POST", "/v1/cluster/join", { ...node, node_id: "node-2" })
      assert.deepEqual(second.body, {
        accepted: true,
        ring_version: 2,
        nodes: [view(), view({ node_id: "node-2" })],
      })
    }),
  )
  served("again is accepted and changes nothing", (ask) =>
    Effect.gen(function* () {
      const first = yield* ask("POST", "/v1/cluster/join", node)
      const again = yield* ask("POST", "/v1/cluster/join", node)
      assert.deepEqual(again.body, first.body)
    }),
  )
  served("again updates the address, on the same ring", (ask) =>
    Effect.gen(function* () {
      yield* ask("POST", "/v1/cluster/join", node)
      const moved = { ...node, address: "[2001:db8::1]:80" }
      const { body } = yield* ask("POST", "/v1/cluster/join", moved)
      assert.deepEqual(body, {
        accepted: true,
        ring_version: 1,
        nodes: [view({ address: moved.address })],
      })
    }),
  )
  served("again updates the capacity, on a new ring where its weight is another", (ask) =>
    Effect.gen(function* () {
      yield* ask("POST", "/v1/cluster/join", node)
      const { body } = yield* ask("POST", "/v1/cluster/join", { ...node, capacity_bytes: 2000 })
      assert.deepEqual(body, {
        accepted: true,
        ring_version: 2,
        nodes: [view({ capacity_bytes: 2000 })],
      })
    }),
  )
  for (const capacity of ["18446744073709551615", '"18446744073709551615"', "9007199254740993"]) {
    served(`takes a capacity of ${capacity} and answers it exactly`, (ask) =>
      Effect.gen(function* () {
        const text = JSON.stringify(node).replace("1000", capacity)
        const joined = yield* ask("POST", "/v1/cluster/join", text)
        assert.equal(joined.status, 200)
        const digits = capacity.replaceAll('"', "")
        assert.include(joined.text, `"capacity_bytes":${digits},`)
        assert.include((yield* ask("GET", "/v1/cluster/state")).text, `"capacity_bytes":${digits},`)
      }),
    )
  }
  served("takes an address of 128 characters, an id of 64 and no capacity", (ask) =>
    Effect.gen(function* () {
      const node_id = "x".repeat(64)
      const longest = { node_id, address: `${"h".repeat(125)}:80`, capacity_bytes: 0 }
      const { body } = yield* ask("POST", "/v1/cluster/join", longest)
      assert.deepEqual(body.nodes, [view(longest)])
    }),
  )
  served("is 429 when the cluster is full", (ask) =>
    Effect.gen(function* () {
      for (let n = 0; n < nodes_max; n++) {
        yield* ask("POST", "/v1/cluster/join", { ...node, node_id: `n${n}` })
      }
      const refusal = yield* ask("POST", "/v1/cluster/join", node)
      assert.equal(refusal.status, 429)
      isEnvelope(refusal, "RESOURCE_EXHAUSTED", "resource exhausted")
    }),
  )
  served("answers its position, by which any reader sees it", (ask) =>
    Effect.gen(function* () {
      const { headers } = yield* ask("POST", "/v1/cluster/join", node)
      const position = headers.get("x-almanac-position") ?? ""
      assert.match(position, /^\d+$/)
      const init = { headers: { "x-almanac-position": position } }
      const state = yield* ask("GET", "/v1/cluster/state", undefined, init)
      assert.equal(state.body.nodes?.length, 1)
    }),
  )
  served("is refused where its key was used for another node", (ask) =>
    Effect.gen(function* () {
      const keyed = { headers: { "idempotency-key": "key" } }
      assert.equal((yield* ask("POST", "/v1/cluster/join", node, keyed)).status, 200)
      const other = { ...node, node_id: "node-9" }
      const refused = yield* ask("POST", "/v1/cluster/join", other, keyed)
      assert.equal(refused.status, 422)
      assert.deepInclude(refused.body, { code: "INVALID_ARGUMENT", message: "invalid argument" })
      assert.equal((yield* ask("POST", "/v1/cluster/join", node, keyed)).status, 200)
    }),
  )
  served("is in the log with who asked and the request's ids", (ask) =>
    Effect.gen(function* () {
      const headers = { "x-request-id": "mine", "idempotency-key": "key" }
      const joined = yield* ask("POST", "/v1/cluster/join", node, { headers })
      const last = yield* (yield* Log).load("blob-storage.cluster.almanac")
      assert.equal(last?.commit.actor, "admin")
      assert.equal(last?.commit.correlation_id, "mine")
      assert.equal(last?.commit.request_id, joined.headers.get("x-request-id"))
    }),
  )
})

describe("leave", () => {
  served("gracefully makes a node leaving, off the ring", (ask) =>
    Effect.gen(function* () {
      yield* ask("POST", "/v1/cluster/join", node)
      yield* ask("POST", "/v1/cluster/heartbeat", beat)
      const left = yield* ask("POST", "/v1/cluster/leave", { node_id: "node-1", graceful: true })
      assert.equal(left.status, 200)
      assert.deepEqual(left.body, { acknowledged: true })
      assert.match(left.headers.get("x-almanac-position") ?? "", /^\d+$/)
      const state = yield* ask("GET", "/v1/cluster/state")
      const nodes = [view({ state: "leaving", used_bytes: 10, blob_count: 2 })]
      assert.deepEqual(state.body, { nodes, ring_version: 2 })
      const ring = yield* ask("POST", "/v1/cluster/sync-ring", { ring_version: 0 })
      assert.deepEqual(ring.body.node_ids, [])
      const metrics = yield* ask("GET", "/v1/cluster/metrics")
      assert.equal(metrics.body.pending_migrations, 2)
      assert.equal(metrics.body.nodes?.[0]?.pending_migrations, 2)
    }),
  )
  served("gracefully ends once the node says that it holds nothing", (ask) =>
    Effect.gen(function* () {
      yield* ask("POST", "/v1/cluster/join", node)
      yield* ask("POST", "/v1/cluster/leave", { node_id: "node-1", graceful: true })
      const empty = { ...beat, used_bytes: 0, blob_count: 0 }
      assert.equal((yield* ask("POST", "/v1/cluster/heartbeat", empty)).status, 200)
      const state = yield* ask("GET", "/v1/cluster/state")
      assert.deepEqual(state.body, { nodes: [], ring_version: 2 })
      assert.equal((yield* ask("POST", "/v1/cluster/heartbeat", empty)).status, 404)
    }),
  )
  served("gracefully twice is acknowledged twice", (ask) =>
    Effect.gen(function* () {
      yield* ask("POST", "/v1/cluster/join", node)
      const graceful = { node_id: "node-1", graceful: true }
      yield* ask("POST", "/v1/cluster/leave", graceful)
      const again = yield* ask("POST", "/v1/cluster/leave", graceful)
      assert.deepEqual(again.body, { acknowledged: true })
    }),
  )
  for (const more of [{ graceful: false }, { graceful: null }, {}]) {
    served(`removes the node at once with ${JSON.stringify(more)}`, (ask) =>
      Effect.gen(function* () {
        yield* ask("POST", "/v1/cluster/join", node)
        const left = yield* ask("POST", "/v1/cluster/leave", { node_id: "node-1", ...more })
        assert.deepEqual(left.body, { acknowledged: true })
        const state = yield* ask("GET", "/v1/cluster/state")
        assert.deepEqual(state.body, { nodes: [], ring_version: 2 })
      }),
    )
  }
  served("of a node that is no member is 404", (ask) =>
    Effect.gen(function* () {
      for (const graceful of [true, false]) {
        const left = yield* ask("POST", "/v1/cluster/leave", { node_id: "node-1", graceful })
        assert.equal(left.status, 404)
        isEnvelope(left, "NOT_FOUND", "node not in the cluster")
      }
    }),
  )
})

const send = Effect.fnUntraced(function* (command: Parameters<typeof Cluster.decide>[1]) {
  const origin = { command_id: randomUUID(), actor: "test", at: "2026-11-20T12:00:00.000Z" }
  return yield* (yield* Commands).send(origin, address(Cluster, "almanac", command))
})
const node_id = NodeId.make("node-1")
const silent = send(
  MarkNodeOffline.make({
    node_id,
    fence: 1,
    at: "2026-11-20T12:00:00.000Z",
    remove_after_seconds: 3600,
  }),
)

describe("heartbeat", () => {
  served("is ok, and has the nodes only for a caller whose ring is behind", (ask) =>
    Effect.gen(function* () {
      yield* ask("POST", "/v1/cluster/join", node)
      const current = yield* ask("POST", "/v1/cluster/heartbeat", beat)
      assert.equal(current.status, 200)
      assert.deepEqual(current.body, { ok: true, ring_version: 1 })
      const ahead = yield* ask("POST", "/v1/cluster/heartbeat", { ...beat, ring_version: 2 })
      assert.deepEqual(ahead.body, { ok: true, ring_version: 1 })
      for (const ring_version of [0, -1, "0", "-9223372036854775808"]) {
        const behind = yield* ask("POST", "/v1/cluster/heartbeat", { ...beat, ring_version })
        const nodes = [view({ used_bytes: 10, blob_count: 2 })]
        assert.deepEqual(behind.body, { ok: true, ring_version: 1, nodes })
      }
    }),
  )
  served("takes numbers as text, and shows them exactly in the state", (ask) =>
    Effect.gen(function* () {
      yield* ask("POST", "/v1/cluster/join", node)
      const largest = "18446744073709551615"
      const values = { ...beat, used_bytes: largest, blob_count: "7", ring_version: "1" }
      assert.equal((yield* ask("POST", "/v1/cluster/heartbeat", values)).status, 200)
      const { text } = yield* ask("GET", "/v1/cluster/state")
      assert.include(text, `"used_bytes":${largest},"blob_count":7`)
    }),
  )
  served("of a node that is no member is 404, with the advice to rejoin", (ask) =>
    Effect.gen(function* () {
      const unknown = yield* ask("POST", "/v1/cluster/heartbeat", beat)
      assert.equal(unknown.status, 404)
      isEnvelope(unknown, "NOT_FOUND", "node not in the cluster")
      assert.equal(unknown.body.ok, false)
      assert.deepEqual(unknown.body.commands, ["rejoin"])
    }),
  )
  served("brings an offline node back to active", (ask) =>
    Effect.gen(function* () {
      yield* ask("POST", "/v1/cluster/join", node)
      yield* (yield* BlobStorageModel).waitFor(yield* silent)
      const offline = yield* ask("GET", "/v1/cluster/state")
      assert.deepEqual(offline.body, { nodes: [view({ state: "offline" })], ring_version: 2 })
      const back = yield* ask("POST", "/v1/cluster/heartbeat", { ...beat, ring_version: 2 })
      const nodes = [view({ used_bytes: 10, blob_count: 2 })]
      assert.deepEqual(back.body, { ok: true, ring_version: 3, nodes })
    }),
  )
  served("of a node that another process let in just now is known", (ask) =>
    Effect.gen(function* () {
      const more = { address: "h:1", capacity_bytes: "1", vnodes_per_node: 128 }
      yield* send(JoinNode.make({ node_id, ...more }))
      assert.equal((yield* ask("POST", "/v1/cluster/heartbeat", beat)).status, 200)
    }),
  )
})

describe("state", () => {
  served("is empty before the first node, at version 0", (ask) =>
    Effect.gen(function* () {
      const { body } = yield* ask("GET", "/v1/cluster/state")
      assert.deepEqual(body, { nodes: [], ring_version: 0 })
    }),
  )
  served("shows this node's own values as they are now", (ask) =>
    Effect.gen(function* () {
      yield* ask("POST", "/v1/cluster/join", { ...node, node_id: "own" })
      const { text } = yield* ask("GET", "/v1/cluster/state")
      assert.include(text, '"used_bytes":1152921504606846977,"blob_count":3')
    }),
  )
})

describe("sync-ring", () => {
  served("returns the ring regardless of the caller's version, and never adopts that", (ask) =>
    Effect.gen(function* () {
      yield* ask("POST", "/v1/cluster/join", { ...node, node_id: "node-2" })
      yield* ask("POST", "/v1/cluster/join", node)
      for (const ring_version of [0, 2, 7, "9223372036854775807", -1]) {
        const { status, body } = yield* ask("POST", "/v1/cluster/sync-ring", { ring_version })
        assert.equal(status, 200)
        const node_ids = ["node-1", "node-2"]
        assert.deepEqual(body, { ring_version: 2, node_ids, vnodes_per_node: 128 })
      }
      assert.equal((yield* ask("GET", "/v1/cluster/state")).body.ring_version, 2)
    }),
  )
  served("answers the ring of no nodes", (ask) =>
    Effect.gen(function* () {
      const { body } = yield* ask("POST", "/v1/cluster/sync-ring", { ring_version: 0 })
      assert.deepEqual(body, { ring_version: 0, node_ids: [], vnodes_per_node: 128 })
    }),
  )
  served("with a newer number fetches what the log holds more", (ask) =>
    Effect.gen(function* () {
      yield* ask("POST", "/v1/cluster/join", node)
      yield* silent
      const { body } = yield* ask("POST", "/v1/cluster/sync-ring", { ring_version: 2 })
      assert.deepEqual(body, { ring_version: 2, node_ids: [], vnodes_per_node: 128 })
    }),
  )
})

type Name = "NONE" | "REPLICA2" | "REPLICA3"

/** Records blobs with these policies in the node's volume, and waits until they are visible. */
const stored = Effect.fnUntraced(function* (node_id: string, names: ReadonlyArray<Name>) {
  const facts = names.map(
    (name, i): VolumeFact => ({
      cursor: i + 1,
      kind: "stored",
      id: BlobId.make(`${i}`.repeat(32)),
      size: 1,
      policy: ReplicationPolicy.make(`REPLICATION_POLICY_${name}`),
      checksum: "c2hhMjU2",
      at: "1763640000000000001",
      actor: "somebody",
      request_id: "r",
      correlation_id: "c",
    }),
  )
  const command = RecordFacts.make({ from: 0, to: facts.length, facts })
  const origin = { command_id: randomUUID(), actor: "test", at: "2026-11-20T12:00:00.000Z" }
  const { send } = yield* Commands
  const position = yield* send(origin, address(Volume, node_id, command))
  yield* (yield* BlobStorageModel).waitFor(position)
})

describe("metrics", () => {
  served("show each node's share, usage and data to move", (ask) =>
    Effect.gen(function* () {
      yield* ask("POST", "/v1/cluster/join", node)
      yield* ask("POST", "/v1/cluster/join", { ...node, node_id: "node-2", capacity_bytes: 4000 })
      yield* ask("POST", "/v1/cluster/heartbeat", beat)
      const { body } = yield* ask("GET", "/v1/cluster/metrics")
      const { nodes = [], ...sums } = body
      assert.deepEqual(sums, {
        ring_version: 2,
        vnodes_per_node: 128,
        pending_migrations: 0,
        bytes_moved: 0,
        repairs: 0,
        replication_failures: 0,
        under_replicated: 0,
      })
      const [one = {}, other = {}] = nodes
      const { ring_share = 0, last_heartbeat_at = 0, ...rest } = one
      assert.closeTo(ring_share + (other.ring_share ?? 0), 1, 1e-9)
      assert.closeTo(ring_share, 0.2, 0.1)
      const none = { bytes_moved: 0, repairs: 0, replication_failures: 0 }
      const counts = { ...none, blob_count: 2, pending_migrations: 0, under_replicated: 0 }
      assert.deepEqual(rest, view({ used_bytes: 10, ...counts }))
      assert.closeTo(last_heartbeat_at / 1e6, Date.now(), 60_000)
      assert.notProperty(other, "last_heartbeat_at")
    }),
  )
  served("show each node's reported repairs, and their sum", (ask) =>
    Effect.gen(function* () {
      yield* ask("POST", "/v1/cluster/join", node)
      yield* ask("POST", "/v1/cluster/join", { ...node, node_id: "node-2" })
      const progress = {
        pending_migrations: 1n,
        bytes_moved: 20n,
        repairs: 3n,
        replication_failures: 4n,
        under_replicated: 5n,
      }
      const { publish } = yield* LiveNodes
      for (const node_id of [NodeId.make("node-1"), NodeId.make("node-2")]) {
        yield* publish({ node_id, used_bytes: 7n, blob_count: 2n, progress })
      }
      yield* ask("POST", "/v1/cluster/leave", { node_id: "node-2", graceful: true })
      const { body } = yield* ask("GET", "/v1/cluster/metrics")
      const { nodes: [one = {}, two = {}] = [], ...sums } = body
      const values = { bytes_moved: 20, repairs: 3, replication_failures: 4, under_replicated: 5 }
      assert.include(one, { ...values, pending_migrations: 1 })
      assert.include(two, { ...values, pending_migrations: 2 }, "all that a leaving node has")
      assert.include(sums, { pending_migrations: 3, bytes_moved: 40, repairs: 6 })
      assert.include(sums, { replication_failures: 8, under_replicated: 10 })
    }),
  )
  served("count blobs that ask for more nodes than are active, by node and in all", (ask) =>
    Effect.gen(function* () {
      const counted = Effect.gen(function* () {
        const { body } = yield* ask("GET", "/v1/cluster/metrics")
        return [body.under_replicated, body.nodes?.map((node) => node.under_replicated)]
      })
      yield* ask("POST", "/v1/cluster/join", node)
      yield* stored("node-1", ["NONE", "REPLICA2", "REPLICA3", "REPLICA3"])
      yield* stored("node-2", ["REPLICA3", "REPLICA2"])
      assert.deepEqual(yield* counted, [3, [3]])
      yield* ask("POST", "/v1/cluster/join", { ...node, node_id: "node-2" })
      assert.deepEqual(yield* counted, [3, [2, 1]])
      yield* ask("POST", "/v1/cluster/join", { ...node, node_id: "node-3" })
      assert.deepEqual(yield* counted, [0, [0, 0, 0]])
      yield* ask("POST", "/v1/cluster/leave", { node_id: "node-3", graceful: true })
      assert.deepEqual(yield* counted, [3, [2, 1, 0]])
    }),
  )
  served("are those of no nodes before the first", (ask) =>
    Effect.gen(function* () {
      assert.deepEqual((yield* ask("GET", "/v1/cluster/metrics")).body.nodes, [])
    }),
  )
})
