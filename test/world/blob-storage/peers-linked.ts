/** Two nodes over a real connection: one sends requests, the other serves them from a store. */
import assert from "node:assert/strict"
import { once } from "node:events"
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { blake3 } from "@napi-rs/blake-hash"
import type { CopyOrder, NodeEngine } from "#actors/blob-storage/ports/node-engine.ts"
import { type MemoryEngine, memoryEngine } from "#adapters/blob-storage/memory/engine.ts"
import { peerCalls } from "#adapters/blob-storage/peer/call.ts"
import { peerEndpoint } from "#adapters/blob-storage/peer/endpoint.ts"
import { type PeerStore, peerHandler } from "#adapters/blob-storage/peer/handler.ts"
import { type LinkVersions, link_versions } from "#adapters/blob-storage/peer/version.ts"
import { peersLink } from "#adapters/blob-storage/peers/link.ts"
import { isPeerFailure } from "#cluster"
import { isBelow } from "#http"
import type { BlobId } from "#schemas/blob-storage/blob.ts"

export const secret = "a secret of at least 32 characters"
export const mib = 1024 * 1024
const ends: Array<() => Promise<void> | void> = []
/** Closes everything that this module opened. */
export const endAll = async () => {
  for (const end of ends.splice(0).toReversed()) await end()
}

const hashed = (bytes: Uint8Array) => blake3(bytes).toString("hex")
// A BlobId is the first half of a digest.
export const idOf = (bytes: Uint8Array) => hashed(bytes).slice(0, 32) as BlobId

export const origin = { actor: "static:writer", request_id: "r-1", correlation_id: "c-1" }

export const orderOf = (bytes: Uint8Array, more: Partial<CopyOrder> = {}): CopyOrder => ({
  id: idOf(bytes),
  checksum: hashed(bytes),
  size: bytes.length,
  policy: "REPLICATION_POLICY_REPLICA3",
  labels: { kind: "weights", ü: '"\n' },
  created_at: 1_700_000_000_123_456_789n,
  shard: undefined,
  origin,
  ...more,
})

/** A guard whose rollback releases the copy that came with that put. */
const guardOf = (local: NodeEngine): PeerStore["guard"] => ({
  receive: local.receive,
  copiesOf: local.copiesOf,
  renew: local.renew,
  rollBack: async (id, created_at) => {
    const [copy] = await local.copiesOf([id])
    if (copy === undefined || copy.kind === "tombstone" || copy.created_at !== created_at) return
    await local.release(id, copy.stored_at, 9n)
  },
})

/** The version of the ring that the node knows. */
export const known_ring = 7

/** True for every other blob of a list, or every fourth on reads, if the ring's version matches. */
export const keeps: PeerStore["keeps"] = async (ids, ring_version, is_read) =>
  ids.map((_, n) => ring_version === known_ring && n % (is_read ? 4 : 2) === 0)

const storeOf = (local: NodeEngine): PeerStore => ({
  local,
  guard: guardOf(local),
  keeps,
  ringVersion: () => known_ring,
})

/** A node with this store, and another node's connection to it. */
export const linked = async (
  local: NodeEngine = memoryEngine(),
  is_open = true,
  versions: LinkVersions = link_versions,
) => {
  const answering = peerHandler({
    store: () => (is_open ? storeOf(local) : undefined),
    now: () => 1_800_000_000_000_000_001n,
  })
  const door = peerEndpoint({
    cluster: "almanac",
    secret,
    versions,
    handlerFor: (_, version) => answering(version),
  })
  const server = createServer((request, response) => {
    if (isBelow(door.prefix, request.url)) door.request(request, response)
    else response.end()
  })
  server.on("upgrade", door.upgrade).listen(0, "127.0.0.1")
  await once(server, "listening")
  // The address of a listening TCP server is an AddressInfo.
  const { port } = server.address() as AddressInfo
  const calls = peerCalls({ cluster: "almanac", secret, node_id: "node-2" })
  ends.push(() => {
    door.close()
    server.closeAllConnections()
    server.close()
  }, calls.close)
  const address = `127.0.0.1:${port}`
  return { calls, address, door, peers: peersLink(calls), peer: { node_id: "node-1", address } }
}

export const codeOf = async (promise: Promise<unknown>) => {
  try {
    await promise
  } catch (cause) {
    assert.ok(isPeerFailure(cause), String(cause))
    return cause.code
  }
  return "OK"
}

export const all = async (bytes: AsyncIterable<Uint8Array>) => {
  const parts: Array<Uint8Array> = []
  for await (const part of bytes) parts.push(part)
  return Buffer.concat(parts)
}

export const cut = async function* (bytes: Uint8Array, piece: number) {
  for (let at = 0; at < bytes.length; at += piece) yield bytes.subarray(at, at + piece)
}

/** An in-memory engine with some methods replaced. */
export const engineWith = (changed: Partial<MemoryEngine>) => ({ ...memoryEngine(), ...changed })
