/** An in-memory cluster with a simulated network and clock, for tests of erasure codes. */
import assert from "node:assert/strict"
import { blake3 } from "@napi-rs/blake-hash"
import type { BlobRange, BlobReading, PutOrder } from "#actors/blob-storage/ports/engine.ts"
import type { Members } from "#actors/blob-storage/ports/peers.ts"
import { erasureTools } from "#adapters/blob-storage/erasure.ts"
import { type MemoryEngine, memoryEngine } from "#adapters/blob-storage/memory/engine.ts"
import { placement } from "#placement"
import type { BlobId, ReplicationPolicy } from "#schemas/blob-storage/blob.ts"
import { getErasure } from "../../erasure/get.ts"
import type { ErasureParts } from "../../erasure/layout.ts"
import { type ErasureSource, putErasure } from "../../erasure/put.ts"
import { rollbackGuard } from "../../rollback.ts"
import { makeNetwork } from "../simulation/network.ts"
import { poisoningPool } from "../simulation/piece-pool.ts"
import { makeWorld } from "../simulation/world.ts"

const tools = { ...erasureTools(), pool: poisoningPool().pool }

export const origin = { actor: "user:test", request_id: "r", correlation_id: "c" }

/** A put order with this policy and these overrides. */
export const orderOf = (
  policy: "EC42" | "EC82" | ReplicationPolicy,
  more: Partial<PutOrder> = {},
): PutOrder => ({
  labels: { kind: "test" },
  policy: policy === "EC42" || policy === "EC82" ? `REPLICATION_POLICY_${policy}` : policy,
  origin,
  expected_id: undefined,
  if_none_match: false,
  ...more,
})

// The first half of a BLAKE3 digest in hex is an identifier.
export const idOf = (bytes: Uint8Array) => blake3(bytes).toString("hex").slice(0, 32) as BlobId

export interface TestNode {
  readonly node_id: string
  readonly engine: MemoryEngine
  readonly parts: ErasureParts
  /** Blobs with missing shards, as reported by reads. */
  readonly shortfalls: Array<BlobId>
  is_up: boolean
}

export interface TestClusterOptions {
  readonly nodes: number
  readonly seed?: number
  /** Wraps a node's in-memory engine. */
  readonly engineOf?: (node_id: string, made: MemoryEngine) => MemoryEngine
}

/** All bytes of a range, read window by window. */
export const bytesOf = async (reading: BlobReading) => {
  if (reading.data) return Buffer.from(reading.data)
  return Buffer.concat(await Array.fromAsync(reading.windows()))
}

export const makeCluster = ({ nodes: count, seed = 1, engineOf }: TestClusterOptions) => {
  const world = makeWorld(seed)
  const network = makeNetwork(world)
  const ids = Array.from({ length: count }, (_, at) => `n${String(at).padStart(2, "0")}`)
  let ring = ids
  let ring_version = 1
  const membersOf = (node_id: string): Members => ({
    ...{ node_id, ring_version, leaving: [], is_leaving: false },
    active: ring.map((one) => ({ node_id: one, address: one })),
    placement: drawn,
  })
  const draw = () =>
    placement({
      ring_version,
      vnodes_per_node: 16,
      nodes: ring.map((node_id) => ({ node_id, weight_percent: 100 })),
    })
  let drawn = draw()

  const nodes = ids.map((node_id): TestNode => {
    const made = memoryEngine({ clock: world.now })
    const engine = engineOf?.(node_id, made) ?? made
    const shortfalls: Array<BlobId> = []
    const guard = rollbackGuard(engine, world)
    const host = { node_id, engine, guard, isUp: () => node.is_up, now: world.now }
    const node: TestNode = {
      ...{ node_id, engine, shortfalls, is_up: true },
      parts: {
        ...{ local: engine, guard, timing: world, ...tools },
        peers: network.peersOf(host),
        members: () => membersOf(node_id),
        onShortfall: (id) => void shortfalls.push(id),
      },
    }
    network.attach(host)
    return node
  })
  const nodeOf = (at: number | string) => {
    const node = nodes.find(({ node_id }, index) => index === at || node_id === at)
    assert.ok(node)
    return node
  }
  return {
    ...{ world, network, nodes, nodeOf, until: world.until },
    /** Changes the ring; all nodes learn of it immediately. */
    setRing: (next: ReadonlyArray<string>) => {
      ring = [...next]
      ring_version += 1
      drawn = draw()
    },
    down: (node: TestNode) => {
      node.is_up = false
      network.drop(node.node_id)
    },
    put: (at: number, order: PutOrder, source: ErasureSource) =>
      world.until(putErasure(nodeOf(at).parts, order, source, world.now())),
    get: (at: number, id: BlobId, range: BlobRange = {}) =>
      world.until(getErasure(nodeOf(at).parts, id, range, new Map())),
    /** Each node's copy of a blob: the index of its shard, "whole", or "deleted". */
    heldOf: async (id: BlobId) => {
      const held = await Promise.all(nodes.map(({ engine }) => engine.copiesOf([id])))
      return Object.fromEntries(
        nodes.flatMap(({ node_id }, at) => {
          const copy = held[at]?.[0]
          if (copy === undefined) return []
          const what = copy.kind === "tombstone" ? "deleted" : (copy.shard?.index ?? "whole")
          return [[node_id, what]]
        }),
      )
    },
  }
}

export type TestCluster = ReturnType<typeof makeCluster>

/** The nodes with a shard, by its index. */
export const holdersIn = async (cluster: TestCluster, id: BlobId) => {
  const held = Object.entries(await cluster.heldOf(id))
  const byIndex = held.filter(([, what]) => typeof what === "number")
  return new Map(byIndex.map(([node_id, index]) => [Number(index), cluster.nodeOf(node_id)]))
}
