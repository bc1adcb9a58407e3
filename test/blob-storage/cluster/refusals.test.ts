import { assert, describe } from "@effect/vitest"
import { Effect } from "effect"
import {
  type Answer,
  beat,
  isEnvelope,
  node,
  served,
  view,
} from "../../world/blob-storage/cluster-served.ts"
import { Outage } from "../../world/log/frail-log.ts"

const endpoints = [
  ["POST", "/v1/cluster/join", node],
  ["POST", "/v1/cluster/leave", { node_id: "node-1" }],
  ["POST", "/v1/cluster/heartbeat", beat],
  ["GET", "/v1/cluster/state", undefined],
  ["POST", "/v1/cluster/sync-ring", { ring_version: 0 }],
  ["GET", "/v1/cluster/metrics", undefined],
  ["POST", "/v1/cluster/compact", undefined],
] as const

describe("who may", () => {
  for (const [method, path, body] of endpoints) {
    served(`${method} ${path}: requires a token with cluster:admin`, (ask) =>
      Effect.gen(function* () {
        yield* ask("POST", "/v1/cluster/join", node)
        assert.equal((yield* ask(method, path, body)).status, 200)
        const anonymous = yield* ask(method, path, body, { token: "" })
        assert.equal(anonymous.status, 401)
        isEnvelope(anonymous, "UNAUTHENTICATED", "unauthenticated")
        const unknown = yield* ask(method, path, body, { token: "nobody" })
        assert.equal(unknown.status, 401)
        const writer = yield* ask(method, path, body, { token: "writer" })
        assert.equal(writer.status, 403)
        isEnvelope(writer, "PERMISSION_DENIED", "permission denied")
        const reader = yield* ask(method, path, body, { token: "reader" })
        assert.equal(reader.status, path === "/v1/cluster/state" ? 200 : 403)
      }),
    )
    served(`${path} answers 501 to another method, and says which it has`, (ask) =>
      Effect.gen(function* () {
        const other = yield* ask("DELETE", path)
        assert.equal(other.status, 501)
        assert.include(other.headers.get("allow") ?? "", method)
        isEnvelope(other, "UNIMPLEMENTED", "unimplemented")
      }),
    )
  }
})

/** Bodies that get 400, and the field that the detail names. */
const refused: ReadonlyArray<readonly [path: string, field: string, body: unknown]> = [
  ...["node_id", "address", "capacity_bytes"].map(
    (field) => ["join", field, { ...node, [field]: undefined }] as const,
  ),
  ["join", "node_id", { ...node, node_id: "" }],
  ["join", "node_id", { ...node, node_id: "a.b" }],
  ["join", "node_id", { ...node, node_id: "a b" }],
  ["join", "node_id", { ...node, node_id: "x".repeat(65) }],
  ["join", "node_id", { ...node, node_id: 7 }],
  ["join", "address", { ...node, address: "host" }],
  ["join", "address", { ...node, address: "host:0" }],
  ["join", "address", { ...node, address: "host:65536" }],
  ["join", "address", { ...node, address: "http://host:80" }],
  ["join", "address", { ...node, address: `${"h".repeat(126)}:80` }],
  ["join", "capacity_bytes", { ...node, capacity_bytes: -1 }],
  ["join", "capacity_bytes", { ...node, capacity_bytes: 1.5 }],
  ["join", "capacity_bytes", { ...node, capacity_bytes: "abc" }],
  ["join", "capacity_bytes", { ...node, capacity_bytes: null }],
  ["join", "capacity_bytes", { ...node, capacity_bytes: "18446744073709551616" }],
  ["join", "capacity_bytes", JSON.stringify(node).replace("1000", "18446744073709551616")],
  ["join", "body", "{"],
  ["join", "body", "[]"],
  ["join", "body", ""],
  ["leave", "node_id", {}],
  ["leave", "node_id", { node_id: "*" }],
  ["leave", "graceful", { node_id: "node-1", graceful: "yes" }],
  ...["node_id", "used_bytes", "blob_count", "ring_version"].map(
    (field) => ["heartbeat", field, { ...beat, [field]: undefined }] as const,
  ),
  ["heartbeat", "used_bytes", { ...beat, used_bytes: -1 }],
  ["heartbeat", "blob_count", { ...beat, blob_count: "18446744073709551616" }],
  ["heartbeat", "ring_version", { ...beat, ring_version: "9223372036854775808" }],
  ["heartbeat", "ring_version", { ...beat, ring_version: "-9223372036854775809" }],
  ["sync-ring", "ring_version", {}],
  ["sync-ring", "ring_version", { ring_version: true }],
  ["sync-ring", "ring_version", { ring_version: "9223372036854775808" }],
]

describe("a field that is wrong or missing is 400", () => {
  for (const [path, field, body] of refused) {
    const what = typeof body === "string" ? body.slice(0, 90) : JSON.stringify(body).slice(0, 90)
    served(`${path}: ${field} in ${what}`, (ask) =>
      Effect.gen(function* () {
        const answer = yield* ask("POST", `/v1/cluster/${path}`, body)
        assert.equal(answer.status, 400)
        isEnvelope(answer, "INVALID_ARGUMENT", "invalid argument")
        assert.include(answer.body.detail ?? "", field)
        assert.deepEqual((yield* ask("GET", "/v1/cluster/state")).body.nodes, [])
      }),
    )
  }
})

describe("when the log cannot be reached", () => {
  const down = Effect.map(Outage, (outage) => {
    outage.down = true
  })
  const degraded = (answer: Answer) => {
    assert.equal(answer.status, 503)
    isEnvelope(answer, "UNAVAILABLE", "cluster degraded")
  }

  served("what changes the cluster is 503 `cluster degraded`, and changes nothing", (ask) =>
    Effect.gen(function* () {
      yield* ask("POST", "/v1/cluster/join", node)
      yield* down
      degraded(yield* ask("POST", "/v1/cluster/join", { ...node, node_id: "node-2" }))
      degraded(yield* ask("POST", "/v1/cluster/leave", { node_id: "node-1", graceful: true }))
      degraded(yield* ask("POST", "/v1/cluster/leave", { node_id: "node-1" }))
      const state = yield* ask("GET", "/v1/cluster/state")
      assert.deepEqual(state.body, { nodes: [view()], ring_version: 1 })
    }),
  )
  served("a heartbeat is answered from the last known state, without the advice to rejoin", (ask) =>
    Effect.gen(function* () {
      yield* ask("POST", "/v1/cluster/join", node)
      yield* down
      assert.equal((yield* ask("POST", "/v1/cluster/heartbeat", beat)).status, 200)
      degraded(yield* ask("POST", "/v1/cluster/heartbeat", { ...beat, node_id: "node-2" }))
    }),
  )
  served("sync-ring answers what is known, unless the caller knows more", (ask) =>
    Effect.gen(function* () {
      yield* ask("POST", "/v1/cluster/join", node)
      yield* down
      assert.equal((yield* ask("POST", "/v1/cluster/sync-ring", { ring_version: 1 })).status, 200)
      degraded(yield* ask("POST", "/v1/cluster/sync-ring", { ring_version: 2 }))
    }),
  )
})
