import assert from "node:assert/strict"
import { once } from "node:events"
import { createServer } from "node:http"
import { type AddressInfo, connect, createServer as createTcpServer } from "node:net"
import { afterEach, describe, it } from "@effect/vitest"
import { peerCalls } from "#adapters/blob-storage/peer/call.ts"
import {
  link_path,
  type PeerEndpointOptions,
  peerEndpoint,
  readChallenge,
  writeProof,
} from "#adapters/blob-storage/peer/endpoint.ts"
import { newNonce, proofOf } from "#adapters/blob-storage/peer/proof.ts"
import { isBelow } from "#http"

const secret = "a secret of at least 32 characters"
const ends: Array<() => Promise<void> | void> = []
afterEach(async () => {
  for (const end of ends.splice(0).toReversed()) await end()
})

/** A node that responds with the caller and the request. */
const opened = async (
  options: Partial<Pick<PeerEndpointOptions, "cluster" | "secret" | "versions">> = {},
) => {
  const door = peerEndpoint({
    cluster: "almanac",
    secret,
    ...options,
    handlerFor: (node_id, version) => async (question) => ({
      json: { node_id, echo: question.json, ...(options.versions && { version }) },
      body: [question.whole ?? new Uint8Array(0)],
    }),
  })
  const server = createServer((request, response) => {
    if (isBelow(door.prefix, request.url)) door.request(request, response)
    else response.end("a user's")
  })
  server.on("upgrade", door.upgrade)
  server.listen(0, "127.0.0.1")
  await once(server, "listening")
  // A server that listens on a port has an address of this type.
  const { port } = server.address() as AddressInfo
  ends.push(() => {
    door.close()
    server.closeAllConnections()
    server.close()
  })
  return { address: `127.0.0.1:${port}`, port, door }
}

const called = (options: Partial<Parameters<typeof peerCalls>[0]> = {}) => {
  const calls = peerCalls({ cluster: "almanac", secret, node_id: "node-2", ...options })
  ends.push(calls.close)
  return calls
}

/** The responses of a connection to texts that are written one after another. */
const spoken = async (port: number, say: (answer: string) => string | undefined) => {
  const socket = connect(port, "127.0.0.1")
  let answer = ""
  for (let text = say(""); text !== undefined; text = say(answer)) {
    socket.write(text)
    const [bytes] = await once(socket, "data")
    answer = String(bytes)
  }
  socket.destroy()
  return answer
}

const challenged = (answer: string) =>
  readChallenge(/^www-authenticate: (.*)\r$/im.exec(answer)?.[1]) ?? ""

const upgraded = (authorization: string) =>
  [
    `GET ${link_path} HTTP/1.1`,
    "Host: node",
    "Connection: Upgrade",
    "Upgrade: almanac-link",
    `Authorization: ${authorization}`,
    "",
    "",
  ].join("\r\n")

const plain = `GET ${link_path} HTTP/1.1\r\nHost: node\r\n\r\n`

const proven = (called_nonce: string, caller_nonce = newNonce()) =>
  writeProof(
    "node-2",
    caller_nonce,
    proofOf(secret, "caller", {
      cluster: "almanac",
      caller: "node-2",
      caller_nonce,
      called_nonce,
    }),
  )

describe("the endpoint for other nodes", () => {
  it("lets in who proves to have the cluster's secret, and says who it is", async () => {
    const { address } = await opened()
    const reply = await called().call(address, 3, { id: "abc" }, [Buffer.from("bytes")], 2000)
    assert.deepEqual(reply.json, { node_id: "node-2", echo: { id: "abc" } })
    assert.equal(String(reply.whole), "bytes")
  })

  it("keeps one connection for many questions", async () => {
    const { address, door } = await opened()
    const calls = called()
    await Promise.all(Array.from({ length: 50 }, (_, at) => calls.call(address, 1, at, [], 2000)))
    assert.equal(door.count(), 1)
  })

  for (const [name, options] of [
    ["another secret", { secret: "another secret of 32 characters!" }],
    ["another cluster", { cluster: "other" }],
  ] as const) {
    it(`refuses a node with ${name}`, async () => {
      const { address } = await opened()
      const pending = called(options).call(address, 1, {}, [], 2000)
      await assert.rejects(pending, { code: "UNAUTHENTICATED" })
    })
  }

  it("rejects callers without its own secret, even if it has none itself", async () => {
    const { address } = await opened({ secret: "" })
    const pending = called({ secret: "" }).call(address, 1, {}, [], 2000)
    await assert.rejects(pending, { code: "UNAUTHENTICATED" })
  })

  for (const [theirs, ours, version] of [
    [{ oldest: 1, newest: 9 }, { oldest: 2, newest: 4 }, 4],
    [{ oldest: 3, newest: 4 }, { oldest: 1, newest: 3 }, 3],
  ] as const) {
    it(`speaks version ${version}, the newest that both know`, async () => {
      const { address } = await opened({ versions: theirs })
      const calls = called({ versions: ours })
      const reply = await calls.call(address, 1, "x", [], 2000)
      assert.deepEqual(reply.json, { node_id: "node-2", echo: "x", version })
      assert.equal((await calls.to(address)).version, version)
      assert.equal(calls.mismatchWith(address), undefined)
    })
  }

  for (const [theirs, ours, who] of [
    [{ oldest: 3, newest: 4 }, { oldest: 1, newest: 2 }, "this node"],
    [{ oldest: 1, newest: 1 }, { oldest: 2, newest: 2 }, "127.0.0.1"],
  ] as const) {
    it(`refuses where ${who} is too old, and both hear why`, async () => {
      const { address, port } = await opened({ versions: theirs })
      const calls = called({ versions: ours })
      await assert.rejects(calls.call(address, 1, {}, [], 2000), { code: "UNAVAILABLE" })
      assert.match(
        calls.mismatchWith(address) ?? "",
        new RegExp(`: ${who}.* needs a newer release$`),
      )
      const spoken_by_1 = upgraded(proven("x")).replace("Host", "X-Almanac-Link: 7-8\r\nHost")
      const refused = await spoken(port, (answer) => {
        if (answer === "") return plain
        // A nonce and a request id may contain any digits.
        if (answer.startsWith("HTTP/1.1 426 ")) return undefined
        const authorization = proven(challenged(answer))
        return spoken_by_1.replace(/Authorization: .*/, `Authorization: ${authorization}`)
      })
      assert.match(refused, /^HTTP\/1\.1 426 /)
      assert.match(refused, /node-2 supports versions 7 to 8 /)
    })
  }

  it("does not reveal its versions to strangers", async () => {
    const { port } = await opened()
    const turns = [plain, upgraded("Bearer abc")]
    assert.doesNotMatch(await spoken(port, () => turns.shift()), /x-almanac-link/i)
  })

  it("is not talked to by a node to which it cannot prove itself", async () => {
    const server = createServer((_, response) => {
      response.writeHead(401, { "www-authenticate": `Almanac-Cluster nonce="${newNonce()}"` }).end()
    })
    server.on("upgrade", (_, socket) => {
      const lines = ["HTTP/1.1 101 Switching Protocols", "Connection: Upgrade"]
      socket.write(`${lines.join("\r\n")}\r\nUpgrade: almanac-link\r\nX-Almanac-Proof: x\r\n\r\n`)
    })
    server.listen(0, "127.0.0.1")
    await once(server, "listening")
    ends.push(() => void server.close())
    // A server that listens on a port has an address of this type.
    const { port } = server.address() as AddressInfo
    const pending = called().call(`127.0.0.1:${port}`, 1, {}, [], 2000)
    await assert.rejects(pending, { code: "UNAUTHENTICATED", message: /could not authenticate/ })
  })

  it("returns 401 with the blob envelope to all others, also with a user's token", async () => {
    const { address } = await opened()
    for (const path of ["/internal/v1", link_path, "/internal/v1/replicate", "/internal/v1?a=1"]) {
      for (const headers of [{}, { authorization: "Bearer a-user-token" }]) {
        const response = await fetch(`http://${address}${path}`, { method: "POST", headers })
        assert.equal(response.status, 401)
        const { request_id, ...body } = (await response.json()) as Record<string, string>
        assert.ok(request_id)
        const detail = "This path is only for nodes of this cluster."
        assert.deepEqual(body, { code: "UNAUTHENTICATED", message: "unauthenticated", detail })
      }
    }
    for (const url of ["/internal/v10", "/v1/blobs", undefined]) {
      assert.ok(!isBelow("/internal/v1", url))
    }
  })

  it("accepts a proof once, on the connection of its nonce", async () => {
    const { port } = await opened()
    const first = await spoken(port, (answer) => {
      if (answer === "") return plain
      return answer.startsWith("HTTP/1.1 401 ") ? upgraded(proven(challenged(answer))) : undefined
    })
    assert.match(first, /^HTTP\/1\.1 101 /)

    let heard = ""
    await spoken(port, (answer) => {
      if (answer === "") return plain
      heard = upgraded(proven(challenged(answer)))
      return undefined
    })
    const turns = [plain, heard]
    assert.match(await spoken(port, () => turns.shift()), /^HTTP\/1\.1 401 /)
    assert.match(await spoken(port, (answer) => (answer === "" ? heard : undefined)), / 401 /)
  })

  it("refuses proofs that are none", async () => {
    const { port } = await opened()
    const nonce = newNonce()
    for (const wrong of [
      "Bearer abc",
      "Almanac-Cluster",
      writeProof("node-2", nonce, "x"),
      writeProof("node 2", nonce, "x"),
      writeProof("node-2", "short", "x"),
    ]) {
      const turns = [plain, upgraded(wrong)]
      assert.match(await spoken(port, () => turns.shift()), /^HTTP\/1\.1 401 /, wrong)
    }
  })

  it("is not waited for again and again where it says nothing", { timeout: 20_000 }, async () => {
    let tries = 0
    const silent = createTcpServer(() => tries++).listen(0, "127.0.0.1")
    await once(silent, "listening")
    // A server that listens on a port has an address of this type.
    const address = `127.0.0.1:${(silent.address() as AddressInfo).port}`
    const calls = called()
    await assert.rejects(calls.call(address, 1, {}, [], 60_000), { code: "UNAVAILABLE" })
    await assert.rejects(calls.call(address, 1, {}, [], 60_000), { message: /cannot be reached/ })
    assert.equal(tries, 1)
    while (tries === 1) {
      await assert.rejects(calls.call(address, 1, {}, [], 60_000), { code: "UNAVAILABLE" })
      await new Promise((resolve) => setTimeout(resolve, 20))
    }
    // The second attempt is still running, and no call waits for it.
    await assert.rejects(calls.call(address, 1, {}, [], 60_000), { message: /not reachable yet/ })
    await calls.close()
    await assert.rejects(calls.call(address, 1, {}, [], 60_000), { message: /stopping/ })
    silent.close()
  })

  it("is tried again after a pause, and fails fast until then", async () => {
    const { address, door } = await opened()
    const calls = called()
    await calls.call(address, 1, {}, [], 2000)
    door.close()
    while (door.count() > 0) await new Promise((resolve) => setTimeout(resolve, 1))
    const again = await calls.call(address, 1, "again", [], 2000).catch(() => undefined)
    if (again === undefined) await calls.call(address, 1, "again", [], 2000)
    assert.equal(door.count(), 1)
    await assert.rejects(calls.call("127.0.0.1:1", 1, {}, [], 2000), { code: "UNAVAILABLE" })
    await assert.rejects(calls.call("127.0.0.1:1", 1, {}, [], 2000), { code: "UNAVAILABLE" })
  })
})
