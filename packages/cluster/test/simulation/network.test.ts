/** Tests of the simulated network, on which other tests rely. */
import assert from "node:assert/strict"
import { blake3 } from "@napi-rs/blake-hash"
import { describe, it } from "vitest"
import type { CopyOrder } from "#actors/blob-storage/ports/node-engine.ts"
import { store_origin } from "#actors/blob-storage/ports/origin.ts"
import { memoryEngine } from "#adapters/blob-storage/memory/engine.ts"
import type { BlobId } from "#schemas/blob-storage/blob.ts"
import { isPeerFailure } from "../../peer-failure.ts"
import { makeNetwork } from "./network.ts"
import { makeWorld } from "./world.ts"

const seed = 1
const deadline_ms = 5000
const size = 200_000

const two = () => {
  const world = makeWorld(seed)
  const network = makeNetwork(world)
  let is_up = true
  const engine = memoryEngine()
  network.attach({ node_id: "b", engine, isUp: () => is_up, now: world.now })
  const peers = network.peersOf({ node_id: "a", isUp: () => true })
  const crash = () => {
    is_up = false
    engine.crash()
    network.drop("b")
  }
  return { world, network, engine, peers, peer: { node_id: "b", address: "b:1" }, crash }
}

const bytes = new Uint8Array(size).map((_, at) => at % 251)
const checksum = blake3(bytes).toString("hex")
// The first half of a BLAKE3 digest in hex is a BlobId.
const id = checksum.slice(0, 32) as BlobId

const order: CopyOrder = {
  id,
  checksum,
  size,
  policy: "REPLICATION_POLICY_REPLICA2",
  labels: { a: "b" },
  created_at: 7n,
  shard: undefined,
  origin: store_origin,
}

const codeOf = (work: Promise<unknown>) =>
  work.then(
    () => "OK",
    (cause: unknown) => (isPeerFailure(cause) ? cause.code : String(cause)),
  )

describe("the simulated network", () => {
  it("sends, reports, reads and releases a copy", async () => {
    const { world, peers, peer } = two()
    const sent = await world.until(peers.send(peer, order, [bytes], "put", deadline_ms))
    assert.equal(sent.created, true)
    assert.equal(sent.copy.created_at, 7n)
    const fetched = await world.until(peers.fetch(peer, id, { offset: 5 }, deadline_ms))
    const read = async () => {
      const parts: Array<Uint8Array> = []
      for await (const part of fetched.bytes) parts.push(part)
      return Buffer.concat(parts)
    }
    assert.deepEqual(await world.until(read()), Buffer.from(bytes.subarray(5)))
    await world.until(peers.rollBack(peer, id, 8n))
    const [kept] = await world.until(peers.copiesOf(peer, [id]))
    assert.equal(kept?.kind, "whole")
    await world.until(peers.rollBack(peer, id, 7n))
    assert.deepEqual(await world.until(peers.copiesOf(peer, [id])), [undefined])
    assert.equal(await codeOf(world.until(peers.fetch(peer, id, {}, deadline_ms))), "NOT_FOUND")
  })

  it("reports refusals of the other node", async () => {
    const { world, peers, peer, engine } = two()
    await engine.deleteClusterWide(id, store_origin, 9n)
    const send = peers.send(peer, order, [bytes], "put", deadline_ms)
    assert.equal(await codeOf(world.until(send)), "FAILED_PRECONDITION")
    const page = await world.until(peers.copies(peer, "", "", 10))
    assert.deepEqual(page.copies, [
      { kind: "tombstone", id, deleted_at: 9n, is_cluster_wide: true },
    ])
  })

  it("times out behind a partition, even in one direction", async () => {
    for (const [from, to, is_done] of [
      ["a", "b", false],
      ["b", "a", true],
    ] as const) {
      const { world, network, peers, peer, engine } = two()
      network.block(from, to)
      const wipe = peers.deleteClusterWide(peer, id, store_origin, 9n)
      assert.equal(await codeOf(world.until(wipe)), "DEADLINE_EXCEEDED")
      // The other node has executed the call, although its response is lost.
      assert.equal((await engine.tombstone(id)) !== undefined, is_done)
      network.heal()
      assert.equal(await codeOf(world.until(peers.copiesOf(peer, [id]))), "OK")
    }
  })

  it("leaves nothing of a body whose receiver dies in the middle", async () => {
    const { world, peers, peer, engine, crash } = two()
    const body = async function* () {
      yield bytes.subarray(0, 100_000)
      crash()
      yield bytes.subarray(100_000)
    }
    const send = peers.send(peer, order, body(), "put", deadline_ms)
    assert.equal(await codeOf(world.until(send)), "UNAVAILABLE")
    assert.deepEqual(await engine.copiesOf([id]), [undefined])
    assert.equal(await codeOf(world.until(peers.copiesOf(peer, [id]))), "UNAVAILABLE")
  })
})
