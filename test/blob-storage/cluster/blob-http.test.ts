/**
 * BlobService over HTTP on one of several nodes.
 *
 * Source: document 1 §4, §7; DECISIONS, list, delete; decision 0123.
 */
import { Effect } from "effect"
import { describe, expect, it } from "vitest"
import { directNodes } from "../../../packages/cluster/test/replicas/direct.ts"
import { idOf, orderOf, origin } from "../../../packages/cluster/test/replicas/nodes.ts"
import { noise } from "../../contract/blob-storage/engine-bytes.ts"
import {
  accept_bytes,
  type BlobService,
  base64,
  bytes_type,
  hexOf,
  json_type,
  withBlobs,
} from "../../world/blob-storage/service.ts"

const small = noise(1, 4096)
const large = noise(2, 3_000_000)

type Cluster = ReturnType<typeof directNodes>

/** Serves the first node of a cluster of `count` nodes. */
const served = (
  count: number,
  body: (service: BlobService, cluster: Cluster) => Effect.Effect<void>,
) => {
  const cluster = directNodes(count)
  const [first] = cluster.nodes
  if (first === undefined) throw new Error("there is no node")
  const { engine } = first
  const setup = { engine, active_nodes: count, node_id: "n1" }
  return withBlobs(setup, (service) => body(service, cluster))
}

const putJson = ({ call }: BlobService, bytes: Uint8Array, policy: string) =>
  call("PUT", "/v1/blobs", {
    headers: json_type,
    body: JSON.stringify({ data: base64(bytes), policy: `REPLICATION_POLICY_${policy}` }),
  })

const putBytes = ({ call }: BlobService, bytes: Uint8Array<ArrayBuffer>, policy: string) =>
  call("POST", `/v1/blobs/stream?policy=REPLICATION_POLICY_${policy}`, {
    headers: bytes_type,
    body: bytes,
  })

const getBytes = ({ call }: BlobService, id: string, headers = {}) =>
  call("GET", `/v1/blobs/${id}`, { headers: { ...accept_bytes, ...headers } })

/** Puts a blob on a node other than the one that serves HTTP. */
const putOn = (cluster: Cluster, at: number, bytes: Uint8Array, labels = {}) =>
  Effect.promise(async () => {
    const order = orderOf("REPLICATION_POLICY_NONE", { labels })
    const answer = await cluster.nodes[at]?.engine.put(order, [bytes], 1n)
    return answer?.id ?? ""
  })

const held = ({ nodes }: Cluster, bytes: Uint8Array) =>
  Effect.promise(async () => {
    const copies = await Promise.all(nodes.map(({ local }) => local.copiesOf([idOf(bytes)])))
    return copies.flatMap(([copy], at) =>
      copy === undefined || copy.kind === "tombstone" ? [] : [`n${at + 1}`],
    )
  })

describe("a put over HTTP in a cluster", () => {
  it("says where it is durable, and under which number of the journal", () =>
    served(6, (service, cluster) =>
      Effect.gen(function* () {
        const wanted = [
          ["NONE", 1],
          ["REPLICA2", 2],
          ["REPLICA3", 3],
          ["EC42", 6],
        ] as const
        for (const [n, [policy, copies]] of wanted.entries()) {
          for (const [m, put] of [putJson, putBytes].entries()) {
            for (const size of [100, 1_000_000]) {
              const bytes = Uint8Array.from(noise(10 * n + m, size))
              const { status, json } = yield* put(service, bytes, policy)
              expect([policy, status, json.detail]).toEqual([policy, 200, undefined])
              const { receipt } = json
              expect(receipt).toMatchObject({ node_id: "n1" })
              const { durable_on, cursor } = receipt as Readonly<Record<string, unknown>>
              expect(durable_on).toHaveLength(copies)
              const names = [...(durable_on as ReadonlyArray<string>)].toSorted()
              expect(yield* held(cluster, bytes)).toEqual(names)
              const fact = yield* Effect.promise(() =>
                Promise.resolve(cluster.nodes[0]?.local.scan(Number(cursor) - 1, 1)),
              )
              if (policy !== "EC42") expect(fact?.[0]).toMatchObject({ cursor, id: idOf(bytes) })
            }
          }
        }
        const again = yield* putJson(service, noise(0, 100), "NONE")
        expect(again.json.receipt).toEqual({ node_id: "n1", durable_on: ["n1"] })
      }),
    ))

  it("of a policy that comes behind large bytes is what the policy says", () =>
    served(6, ({ call }, cluster) =>
      Effect.gen(function* () {
        const policy = "REPLICATION_POLICY_EC42"
        const body = JSON.stringify({ data: base64(large), policy })
        expect(body.indexOf("policy")).toBeGreaterThan(1_000_000)
        const { status } = yield* call("PUT", "/v1/blobs", { headers: json_type, body })
        expect(status).toBe(200)
        expect((yield* held(cluster, large)).length).toBe(6)
      }),
    ))

  it("is 412 with too few nodes, and 500 where more shard stores fail than may", () =>
    served(6, (service, cluster) =>
      Effect.gen(function* () {
        const few = yield* putJson(service, small, "EC82")
        expect([few.status, few.json]).toMatchObject([
          412,
          {
            code: "FAILED_PRECONDITION",
            message: "not enough nodes for EC",
            detail: "not enough nodes for EC (have 6, need 10)",
          },
        ])
        for (const name of ["n2", "n3", "n4"]) cluster.down.add(name)
        for (const put of [putJson, putBytes]) {
          const failed = yield* put(service, Uint8Array.from(small), "EC42")
          expect([failed.status, failed.json]).toMatchObject([
            500,
            { code: "INTERNAL", message: "too many shard store failures" },
          ])
        }
        cluster.down.clear()
        expect(yield* held(cluster, small)).toEqual([])
        cluster.down.add("n5").add("n6")
        expect((yield* putJson(service, small, "EC42")).status).toBe(200)
        expect((yield* held(cluster, small)).length).toBe(4)
      }),
    ))
})

describe("a get over HTTP of what another node has", () => {
  it("is answered in every form, with ranges and conditions", () =>
    served(5, (service, cluster) =>
      Effect.gen(function* () {
        const { call } = service
        for (const bytes of [small, large]) {
          const id = yield* putOn(cluster, 3, bytes, { k: "v" })
          const json = yield* call("GET", `/v1/blobs/${id}`)
          expect([json.status, json.json.data === base64(bytes)]).toEqual([200, true])
          const lines = yield* call("GET", `/v1/blobs/${id}/stream`)
          const chunks = lines.text
            .trimEnd()
            .split("\n")
            .map((text) => JSON.parse(text).data)
          const whole = Buffer.concat(chunks.map((data: string) => Buffer.from(data, "base64")))
          expect(whole.equals(bytes)).toBe(true)
          const raw = yield* getBytes(service, id)
          expect([raw.status, raw.headers.get("x-label-k")]).toEqual([200, "v"])
          expect(raw.headers.get("content-length")).toBe(`${bytes.length}`)
          const part = yield* getBytes(service, id, { range: "bytes=10-19" })
          expect([part.status, part.headers.get("content-range")]).toEqual([
            206,
            `bytes 10-19/${bytes.length}`,
          ])
          const head = yield* call("HEAD", `/v1/blobs/${id}`, { headers: accept_bytes })
          expect(head.headers.get("content-length")).toBe(`${bytes.length}`)
          const known = yield* getBytes(service, id, { "if-none-match": `"${id}"` })
          expect(known.status).toBe(304)
        }
      }),
    ))

  it("is 404 where no node has it, and 503 where one that may cannot be asked", () =>
    served(4, (service, cluster) =>
      Effect.gen(function* () {
        const id = idOf(small)
        for (const headers of [{}, accept_bytes]) {
          const gone = yield* service.call("GET", `/v1/blobs/${id}`, { headers })
          expect([gone.status, gone.json]).toMatchObject([
            404,
            { code: "NOT_FOUND", message: "blob not found on any node" },
          ])
        }
        cluster.down.add("n3")
        for (const headers of [{}, accept_bytes]) {
          const unknown = yield* service.call("GET", `/v1/blobs/${id}`, { headers })
          expect([unknown.status, unknown.json.code]).toEqual([503, "UNAVAILABLE"])
          expect(unknown.json.detail).toContain("no response from n3")
        }
      }),
    ))
})

describe("the scope of a request", () => {
  const stat = ({ call }: BlobService, id: string, query = "") =>
    Effect.map(call("GET", `/v1/blobs/${id}/stat${query}`), ({ json }) => json.exists)

  it("is this node alone, or all of them", () =>
    served(3, (service, cluster) =>
      Effect.gen(function* () {
        const { call } = service
        const id = yield* putOn(cluster, 1, small)
        expect(yield* stat(service, id)).toBe(false)
        expect(yield* stat(service, id, "?scope=node")).toBe(false)
        expect(yield* stat(service, id, "?scope=cluster")).toBe(true)
        const here = yield* call("GET", "/v1/blobs")
        expect(here.json.ids).toEqual([])
        const all = yield* call("GET", "/v1/blobs?scope=cluster")
        expect((all.json.ids as ReadonlyArray<{ readonly id: string }>).map(hexOf)).toEqual([id])

        expect((yield* call("DELETE", `/v1/blobs/${id}`)).json).toEqual({ deleted: true })
        expect(yield* held(cluster, small)).toEqual(["n2"])
        const deleted = yield* call("DELETE", `/v1/blobs/${id}?scope=cluster`)
        expect([deleted.status, deleted.json]).toEqual([200, { deleted: true }])
        expect(yield* held(cluster, small)).toEqual([])
        expect(yield* stat(service, id, "?scope=cluster")).toBe(false)
        const wrong = yield* call("DELETE", `/v1/blobs/${id}?scope=world`)
        expect(wrong.status).toBe(400)
      }),
    ))

  it("goes on from page to page of all nodes by cursors of this one", () =>
    served(3, ({ call }, cluster) =>
      Effect.gen(function* () {
        const ids: Array<string> = []
        for (let n = 0; n < 9; n++) ids.push(yield* putOn(cluster, n % 3, noise(n, 20)))
        const seen: Array<string> = []
        for (let cursor = ""; ; ) {
          const query = new URLSearchParams({ scope: "cluster", limit: "2", cursor })
          const { json } = yield* call("GET", `/v1/blobs?${query}`)
          seen.push(...(json.ids as ReadonlyArray<{ readonly id: string }>).map(hexOf))
          if (json.has_more !== true) break
          cursor = String(json.next_cursor)
        }
        expect(seen).toEqual(ids.toSorted())
        cluster.down.add("n2")
        const torn = yield* call("GET", "/v1/blobs?scope=cluster")
        expect([torn.status, torn.json.code]).toEqual([503, "UNAVAILABLE"])
      }),
    ))

  it("of a batch is this node for what is known, and all for the bytes", () =>
    served(3, ({ call }, cluster) =>
      Effect.gen(function* () {
        const id = yield* putOn(cluster, 1, small, { k: "v" })
        const there = yield* putOn(cluster, 0, large)
        const missing = idOf(noise(99, 9))
        const ask = (path: string, scopes = "") =>
          Effect.map(
            call("POST", `/v1/blobs/${path}${scopes}`, {
              headers: json_type,
              body: JSON.stringify([id, missing, there]),
            }),
            ({ text }) =>
              text
                .trimEnd()
                .split("\n")
                .map((line) => JSON.parse(line)),
          )
        const existing = (lines: ReadonlyArray<{ readonly exists: boolean }>) =>
          lines.map(({ exists }) => exists)
        expect(existing(yield* ask("stat"))).toEqual([false, false, true])
        expect(existing(yield* ask("stat", "?scope=cluster"))).toEqual([true, false, true])
        const [first, second, third] = yield* ask("get")
        expect(first).toMatchObject({ data: base64(small), meta: { labels: { k: "v" } } })
        expect(second).toMatchObject({ error: { code: "NOT_FOUND" } })
        expect(third.data === base64(large)).toBe(true)
        expect(origin.actor).toBe("tester")
      }),
    ))
})
