/** The internal endpoint on the public listener: admission by secret or certificate only. */
import { execFileSync } from "node:child_process"
import { once } from "node:events"
import { copyFileSync, mkdtempSync, rmSync } from "node:fs"
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Clock, Effect, Exit, Redacted, Scope } from "effect"
import { afterAll, afterEach, assert, beforeAll, describe, expect, it } from "vitest"
import { makeMembersCache } from "#actors/blob-storage/members.ts"
import { faultOf } from "#actors/blob-storage/ports/fault.ts"
import { memoryEngine } from "#adapters/blob-storage/memory/engine.ts"
import type { PeerStore } from "#adapters/blob-storage/peer/handler.ts"
import { peersLink } from "#adapters/blob-storage/peers/link.ts"
import { logMemory } from "#journal"
import { BlobId } from "#schemas/blob-storage/blob.ts"
import { NodeAddress, NodeId } from "#schemas/blob-storage/node.ts"
import { type JoinOptions, joinNodes, nodeDoor, openCalls } from "#server/blob-storage/cluster.ts"
import { probe } from "../gateway/probe.ts"
import { as, type Given, settingsWith, startHttp, until } from "../world/http.ts"

const secret = Redacted.make("a secret of at least 32 characters")
const folder = mkdtempSync(join(tmpdir(), "almanac-nodes-"))
const at = (name: string) => join(folder, name)

const openssl = (...args: ReadonlyArray<string>) =>
  execFileSync("openssl", args, { cwd: folder, stdio: "pipe" })

const certificate = (name: string, common_name: string, by?: string) =>
  openssl(
    "req",
    "-x509",
    "-newkey",
    "ec",
    "-pkeyopt",
    "ec_paramgen_curve:P-256",
    "-nodes",
    "-keyout",
    `${name}.key`,
    "-out",
    `${name}.pem`,
    "-subj",
    `/CN=${common_name}`,
    "-days",
    "2",
    "-addext",
    "subjectAltName=DNS:localhost,IP:127.0.0.1",
    ...(by === undefined
      ? []
      : ["-CA", `${by}.pem`, "-CAkey", `${by}.key`, "-addext", "basicConstraints=CA:FALSE"]),
  )

beforeAll(() => {
  openssl(
    "req",
    "-x509",
    "-newkey",
    "ec",
    "-pkeyopt",
    "ec_paramgen_curve:P-256",
    "-nodes",
    "-keyout",
    "ours.key",
    "-out",
    "ours.pem",
    "-subj",
    "/CN=ours",
    "-days",
    "2",
  )
  certificate("shared", "shared")
  certificate("node-1", "node-1", "ours")
  certificate("node-2", "node-2", "ours")
  certificate("user", "user", "ours")
})
afterAll(() => rmSync(folder, { recursive: true }))

const ends: Array<() => Promise<unknown>> = []
afterEach(async () => {
  for (const end of ends.splice(0).toReversed()) await end()
})

/** Members with these addresses, from the first node's view. */
const heldAt = (...addresses: ReadonlyArray<string>) => heldIn("active", addresses)

/** The state of the last node. */
const heldIn = (state: "active" | "leaving", addresses = nowhere) => {
  const held = makeMembersCache("node-1")
  const nodes = addresses.map((address, n) => ({
    node_id: NodeId.make(`node-${n + 1}`),
    address: NodeAddress.make(address),
    capacity_bytes: "1",
    weight_percent: 100,
    state: n + 1 === addresses.length ? state : "active",
  }))
  const ring = { ring_version: 1, vnodes_per_node: 8, capacity_unit_bytes: "1", fence: 0 }
  held.learn({ ...ring, departed: [], departed_before: "", nodes }, 1)
  return held
}
const nowhere: ReadonlyArray<string> = ["127.0.0.1:1", "127.0.0.1:1"]
const held = heldAt(...nowhere)

const storeOf = (): PeerStore => {
  const local = memoryEngine()
  const keeps = async () => []
  return {
    local,
    guard: { ...local, rollBack: async () => undefined },
    keeps,
    ringVersion: () => 1,
  }
}

/** A node with these settings that also serves users. */
const served = async (given: Given, store = storeOf()) => {
  const settings = settingsWith(given)
  const internal = await Effect.runPromise(
    nodeDoor({ settings, node_id: "node-1", held }, () => store),
  )
  const server = await startHttp([probe("blob-storage", "/v1/blobs")], {
    settings: given,
    internal,
  })
  ends.push(server.stop)
  return { ...server, internal }
}

/** A client to the node at this port, for a node with these settings. */
const asking = async (port: number, given: Given, node_id = "node-2") => {
  const scope = Effect.runSync(Scope.make())
  const options = { settings: settingsWith(given), node_id, held }
  const calls = await Effect.runPromise(Scope.provide(openCalls(options), scope))
  ends.push(() => Effect.runPromise(Scope.close(scope, Exit.void)))
  const peer = { node_id: "node-1", address: `127.0.0.1:${port}` }
  return () =>
    peersLink(calls)
      .copies(peer, "", "", 10)
      .then(
        ({ copies }) => copies.length,
        (cause: { readonly code?: string }) => cause.code,
      )
}

const sendRequest = async (...options: Parameters<typeof asking>) => (await asking(...options))()

const tlsOf = (name: string, client_ca = "") => ({
  cert: at(`${name}.pem`),
  key: at(`${name}.key`),
  client_ca: client_ca && at(`${client_ca}.pem`),
})

describe("a listener with an internal endpoint", () => {
  it("serves users as before, and nodes on one connection", async () => {
    const { port, fetch, internal } = await served({ cluster: { secret } })
    assert.equal((await fetch("/v1/blobs", { headers: as("reader") })).status, 200)
    assert.equal(await sendRequest(port, { cluster: { secret } }), 0)
    assert.equal(internal.count(), 1)
    assert.equal((await fetch("/v1/blobs", { headers: as("reader") })).status, 200)
  })

  it("responds with 401 on every internal path to any user credentials", async () => {
    const { fetch, raw } = await served({ cluster: { secret } })
    const paths = ["/internal/v1", "/internal/v1/", "/internal/v1/link", "/internal/v1/replicate?a"]
    for (const path of paths) {
      for (const headers of [{}, as("reader"), as("admin"), as("wrong")]) {
        for (const method of ["GET", "POST", "PUT", "DELETE", "OPTIONS"]) {
          const { status, headers: response_headers } = await fetch(path, { method, headers })
          assert.equal(status, 401, `${method} ${path}`)
          assert.match(
            response_headers.get("www-authenticate") ?? "",
            /^Almanac-Cluster nonce="[\w-]{43}"$/,
          )
        }
      }
    }
    for (const protocol of ["almanac-link", "websocket", "h2c"]) {
      const lines = ["GET /internal/v1/link HTTP/1.1", "Host: node", "Connection: Upgrade"]
      const answer = await raw([...lines, `Upgrade: ${protocol}`, "", ""].join("\r\n"))
      assert.match(answer, /^HTTP\/1\.1 401 /, protocol)
    }
  })

  it("leaves other upgrades to their handlers", async () => {
    const { raw } = await served({ cluster: { secret } })
    const lines = ["GET /v1/blobs HTTP/1.1", "Host: node", "Authorization: Bearer reader"]
    const more = ["Connection: Upgrade, close", "Upgrade: h2c", "", ""]
    assert.match(await raw([...lines, ...more].join("\r\n")), /^HTTP\/1\.1 200 /)
  })

  it("admits no node without a secret", async () => {
    const { port } = await served({})
    assert.equal(await sendRequest(port, {}), "UNAUTHENTICATED")
    assert.equal(await sendRequest(port, { cluster: { secret } }), "UNAUTHENTICATED")
  })

  it("closes the links of other nodes when it stops", async () => {
    const { port, stop, internal } = await served({ cluster: { secret } })
    assert.equal(await sendRequest(port, { cluster: { secret } }), 0)
    ends.shift()
    await stop()
    await until(() => internal.count() === 0)
  })
})

describe("nodes with TLS", () => {
  it("authenticate by secret over mutually trusted certificates", async () => {
    const shared = { cluster: { secret }, tls: tlsOf("shared") }
    const { port } = await served(shared)
    assert.equal(await sendRequest(port, shared), 0)
    assert.equal(
      await sendRequest(port, { cluster: { secret }, tls: tlsOf("user") }),
      "UNAVAILABLE",
    )
    assert.equal(await sendRequest(port, { cluster: { secret } }), "UNAVAILABLE")
  })

  it("need no secret if certificates have the names of nodes", async () => {
    const { port } = await served({ tls: tlsOf("node-1", "ours") })
    assert.equal(await sendRequest(port, { tls: tlsOf("node-2", "ours") }), 0)
    assert.equal(await sendRequest(port, { tls: tlsOf("user", "ours") }), "UNAUTHENTICATED")
    // A claimed name without proof does not count.
    assert.equal(await sendRequest(port, { tls: tlsOf("shared", "ours") }, "node-2"), "UNAVAILABLE")
  })

  it("use the current files of [tls]", async () => {
    const give = (name: string) => {
      for (const end of ["pem", "key"]) copyFileSync(at(`${name}.${end}`), at(`given.${end}`))
    }
    give("shared")
    const { port } = await served({ tls: tlsOf("node-1", "ours") })
    const ask = await asking(port, { tls: tlsOf("given", "ours") })
    assert.equal(await ask(), "UNAVAILABLE")
    give("node-2")
    await expect.poll(ask, { timeout: 10_000 }).toBe(0)
  })

  it("prefer a secret over a certificate", async () => {
    const both = { cluster: { secret }, tls: tlsOf("node-1", "ours") }
    const { port } = await served(both)
    assert.equal(await sendRequest(port, { cluster: { secret }, tls: tlsOf("user", "ours") }), 0)
    assert.equal(await sendRequest(port, { tls: tlsOf("node-2", "ours") }), 0)
  })
})

/** A node in its cluster, with an empty store; its clock may be ahead. */
const joined = async (options: JoinOptions, ahead_ms = () => 0) => {
  const scope = Effect.runSync(Scope.make())
  ends.push(() => Effect.runPromise(Scope.close(scope, Exit.void)))
  const ours = Effect.runSync(Clock.Clock)
  const clock: Clock.Clock = {
    currentTimeMillisUnsafe: () => ours.currentTimeMillisUnsafe() + ahead_ms(),
    currentTimeMillis: Effect.sync(() => clock.currentTimeMillisUnsafe()),
    currentTimeNanosUnsafe: () => ours.currentTimeNanosUnsafe(),
    currentTimeNanos: ours.currentTimeNanos,
    monotonicTimeNanosUnsafe: () => ours.monotonicTimeNanosUnsafe(),
    monotonicTimeNanos: ours.monotonicTimeNanos,
    sleep: (duration) => ours.sleep(duration),
  }
  return await Effect.runPromise(
    joinNodes(options, memoryEngine()).pipe(
      Effect.provideService(Clock.Clock, clock),
      Scope.provide(scope),
      Effect.provide(logMemory),
    ),
  )
}

describe("a get of a missing blob", () => {
  const id = BlobId.make("0".repeat(32))
  const minute_ms = 60_000

  it.each([
    ["active", true, "BlobUnreachable", "BlobUnreachable"],
    ["leaving", true, "BlobUnreachable", "BlobNotFound"],
    ["active", false, "BlobNotFound", "BlobNotFound"],
  ] as const)(
    "from a silent node that is %s, asked with a secret: %s, is %s, and a minute later %s",
    async (state, has_secret, now, later) => {
      let ahead_ms = 0
      const heard_at = Date.now()
      const settings = settingsWith(has_secret ? { cluster: { secret } } : {})
      const { engine } = await joined(
        { settings, node_id: "node-1", held: heldIn(state), lastHeartbeat: () => heard_at },
        () => ahead_ms,
      )
      const faults = async () => [
        await engine.get(id, {}, 1n).then(undefined, faultOf),
        await engine.list("", "", 1, "cluster").then(() => ({ _tag: "BlobNotFound" }), faultOf),
      ]
      expect(await faults()).toMatchObject([{ _tag: now }, { _tag: now }])
      ahead_ms = minute_ms
      const [got, listed] = await faults()
      const not_asked = later === "BlobNotFound" ? { not_asked: ["node-2"] } : {}
      expect([got, listed]).toMatchObject([{ _tag: later, ...not_asked }, { _tag: later }])
    },
  )
})

describe("a leaving node without heartbeats", () => {
  it("still gets requests, because the bus may be down", async () => {
    const store = storeOf()
    const origin = { actor: "tester", request_id: "r", correlation_id: "c" }
    const order = { policy: "REPLICATION_POLICY_NONE", labels: {}, origin } as const
    const bytes = new TextEncoder().encode("only there")
    const put = { ...order, expected_id: undefined, if_none_match: false }
    const { id } = await store.local.put(put, [bytes], 1n)
    const { port } = await served({ cluster: { secret } }, store)
    let ahead_ms = 0
    const leaving = heldIn("leaving", ["127.0.0.1:1", `127.0.0.1:${port}`])
    const settings = settingsWith({ cluster: { secret } })
    const { engine } = await joined(
      { settings, node_id: "node-1", held: leaving, lastHeartbeat: () => undefined },
      () => ahead_ms,
    )
    ahead_ms = 60_000
    expect(Buffer.from((await engine.get(id, {}, 1n)).data ?? [])).toEqual(Buffer.from(bytes))
    expect((await engine.list("", "", 10, "cluster")).ids).toEqual([id])
    const other = BlobId.make("0".repeat(32))
    const nowhere = await engine.get(other, {}, 1n).then(undefined, faultOf)
    expect(nowhere).toEqual({ _tag: "BlobNotFound", id: other })
  })
})

describe("a node without a secret", () => {
  it("does not connect to addresses of joined nodes", async () => {
    let connections = 0
    const other = createServer((_, response) => response.writeHead(404).end())
    other.on("connection", () => connections++)
    other.listen(0, "127.0.0.1")
    await once(other, "listening")
    ends.push(async () => other.close())
    // A server that listens on a port has this form of address.
    const address = `127.0.0.1:${(other.address() as AddressInfo).port}`
    const options = { node_id: "node-1", held: heldAt("127.0.0.1:1", address) }
    const origin = { actor: "tester", request_id: "r", correlation_id: "c" }
    for (const [given, expected] of [
      [{}, false],
      [{ cluster: { secret } }, true],
    ] as const) {
      const settings = settingsWith(given)
      const { engine } = await joined({ ...options, settings, lastHeartbeat: () => undefined })
      await engine.delete(BlobId.make("0".repeat(32)), origin, 1n, "cluster")
      expect(connections > 0).toBe(expected)
    }
  })
})

describe("a node of another release", () => {
  /** The address of a node with an incompatible protocol version. */
  const startOther = async () => {
    const nonce = "n".repeat(43)
    const other = createServer((_, response) => {
      response.writeHead(401, { "www-authenticate": `Almanac-Cluster nonce="${nonce}"` }).end()
    })
    other.on("upgrade", (_, socket) => {
      const lines = ["HTTP/1.1 426 Upgrade Required", "X-Almanac-Link: 8-9", "Content-Length: 0"]
      socket.end(`${lines.join("\r\n")}\r\n\r\n`)
    })
    other.listen(0, "127.0.0.1")
    await once(other, "listening")
    ends.push(async () => other.close())
    // A server that listens on a port has this form of address.
    return `127.0.0.1:${(other.address() as AddressInfo).port}`
  }
  /** The incompatibility that a node reports after requests to these other nodes. */
  const apartFrom = async (...others: ReadonlyArray<string>) => {
    const { engine, apart } = await joined({
      settings: settingsWith({ cluster: { secret } }),
      node_id: "node-1",
      held: heldAt("127.0.0.1:1", ...others),
      lastHeartbeat: () => undefined,
    })
    assert.equal(apart(), undefined)
    await expect(engine.get(BlobId.make("0".repeat(32)), {}, 1n)).rejects.toThrow()
    return apart()
  }

  it("is named by the node that is incompatible with it", async () => {
    const address = await startOther()
    const known = `${address} supports versions 8 to 9 of the node protocol, this node`
    const result = await apartFrom(address)
    assert.ok(result?.startsWith(known), result)
  })
  it("is not a problem while at least as many nodes are compatible", async () => {
    const [one, other] = [await startOther(), await startOther()]
    assert.equal(await apartFrom(one, "127.0.0.1:1"), undefined)
    assert.ok((await apartFrom(one, other, "127.0.0.1:1"))?.startsWith(one))
  })
})
