/** Nodes with in-memory stores and a cluster engine each, on the simulated network. */
import { blake3 } from "@napi-rs/blake-hash"
import type { PutOrder } from "#actors/blob-storage/ports/engine.ts"
import { faultOf } from "#actors/blob-storage/ports/fault.ts"
import type { Members, Peer, Peers } from "#actors/blob-storage/ports/peers.ts"
import { blobHasher } from "#adapters/blob-storage/blob-hasher.ts"
import { memoryEngine } from "#adapters/blob-storage/memory/engine.ts"
import { type ErasureCode, erasureCode, unit_bytes } from "#erasure"
import { placement } from "#placement"
import type { BlobId, ReplicationPolicy } from "#schemas/blob-storage/blob.ts"
import type { RepairHint } from "../../repair/hint.ts"
import { clusterEngine } from "../../replicas/engine.ts"
import { rollbackGuard } from "../../rollback.ts"
import { makeNetwork } from "../simulation/network.ts"
import { poisoningPool } from "../simulation/piece-pool.ts"
import { makeWorld } from "../simulation/world.ts"

export const origin = { actor: "tester", request_id: "r-1", correlation_id: "c-1" }

const codes = new Map<number, ErasureCode>()
export const openCode = (data_shards: number) => {
  const code = codes.get(data_shards) ?? erasureCode(data_shards, unit_bytes)
  codes.set(data_shards, code)
  return code
}

export const { pool } = poisoningPool()

export const idOf = (bytes: Uint8Array) =>
  // The first half of a BLAKE3 digest in hex is a BlobId.
  blake3(bytes).toString("hex").slice(0, 32) as BlobId

/** Names of `count` nodes. */
export const namesOf = (count: number) => Array.from({ length: count }, (_, at) => `n${at + 1}`)

const peerOf = (node_id: string): Peer => ({ node_id, address: `${node_id}:1` })

/** The cluster as node `node_id` knows it, with these nodes. */
export const membersOf = (
  node_id: string,
  active: ReadonlyArray<string>,
  leaving: ReadonlyArray<string> = [],
  offline: ReadonlyArray<string> = [],
): Members => ({
  ...{ node_id, ring_version: active.length, is_leaving: leaving.includes(node_id), offline },
  all_online_since: offline.length === 0 ? 0n : undefined,
  active: active.map(peerOf),
  leaving: leaving.map(peerOf),
  placement: placement({
    ...{ ring_version: active.length, vnodes_per_node: 16 },
    nodes: active.map((name) => ({ node_id: name, weight_percent: 100 })),
  }),
})

export const orderOf = (policy: ReplicationPolicy, changes: Partial<PutOrder> = {}): PutOrder => ({
  ...{ policy, labels: { a: "b" }, origin, expected_id: undefined, if_none_match: false },
  ...changes,
})

/** The tag of the fault that rejects the promise; "none" if it resolves. */
export const faultIn = (work: Promise<unknown>) =>
  work.then(
    () => "none",
    (cause: unknown) => faultOf(cause)._tag,
  )

type Names = ReadonlyArray<string>

const seed = Number(process.env.ALMANAC_SEED ?? 20_261_122)

/** The members that a node knows; computed again when their number changes. */
const known = (node_id: string, now: () => [Names, Names, Names]) => {
  let members: Members | undefined
  return () => {
    const lists = [members?.active, members?.leaving, members?.offline]
    const is_same = lists.every((list, at) => list?.length === now()[at]?.length)
    if (members === undefined || !is_same) members = membersOf(node_id, ...now())
    return members
  }
}

/** A cluster whose nodes are all active and know it. `until` advances the world's clock. */
export const makeNodes = (
  count: number,
  capacity_bytes?: number,
  through: (peers: Peers) => Peers = (peers) => peers,
) => {
  const world = makeWorld(seed)
  const network = makeNetwork(world)
  let active = namesOf(count)
  let leaving: ReadonlyArray<string> = []
  let offline: ReadonlyArray<string> = []

  const makeNode = (node_id: string) => {
    const local = memoryEngine(capacity_bytes === undefined ? {} : { capacity_bytes })
    const timing = { now: world.now, after: world.after }
    const guard = rollbackGuard(local, timing)
    let is_up = true
    network.attach({ node_id, engine: local, isUp: () => is_up, now: world.now, guard })
    const hints: Array<RepairHint> = []
    const reports: Array<string> = []
    const engine = clusterEngine({
      ...{ local, guard, timing, openCode, hasher: blobHasher, pool },
      peers: through(network.peersOf({ node_id, isUp: () => is_up })),
      members: known(node_id, () => [active, leaving, offline]),
      hint: (hint) => void hints.push(hint),
      report: (problem) => void reports.push(problem),
    })
    const crash = () => {
      is_up = false
      local.crash()
      network.drop(node_id)
    }
    return { node_id, local, engine, hints, reports, crash }
  }
  const nodes = active.map(makeNode)
  const nodeOf = (node_id: string) => {
    const node = nodes.find((one) => one.node_id === node_id)
    if (node === undefined) throw new Error(`there is no node ${node_id}`)
    return node
  }
  /** The owners of a blob in order, and the other nodes. */
  const rolesOf = (id: BlobId, owners: number) => {
    const table = membersOf("", active).placement
    const named = table.ownersOf(table.partitionOf(id), owners)
    return {
      owners: named.map(nodeOf),
      others: nodes.filter(({ node_id }) => !named.includes(node_id)),
    }
  }
  return {
    ...{ world, network, nodes, nodeOf, rolesOf, until: world.until },
    /** The nodes with a whole copy or a shard. */
    holders: async (id: BlobId) => {
      const held = await Promise.all(nodes.map(({ local }) => local.copiesOf([id])))
      return nodes.flatMap(({ node_id }, at) => {
        const kind = held[at]?.[0]?.kind
        return kind === "whole" || kind === "shard" ? [node_id] : []
      })
    },
    setMembers: (
      next: ReadonlyArray<string>,
      gone: ReadonlyArray<string> = [],
      silent: ReadonlyArray<string> = [],
    ) => {
      active = [...next]
      offline = silent
      leaving = gone
    },
  }
}
export type Nodes = ReturnType<typeof makeNodes>
export type Node = Nodes["nodes"][number]

/** All bytes of a get, collected from its windows. */
export const read = async (node: Node, id: BlobId, range = {}, at = 1n) => {
  const reading = await node.engine.get(id, range, at)
  const parts: Array<Uint8Array> = []
  for await (const part of reading.windows()) parts.push(part)
  return { reading, bytes: Buffer.concat(parts) }
}
