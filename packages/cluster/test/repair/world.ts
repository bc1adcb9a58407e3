/** In-memory nodes with the real repair, on a simulated network and clock. */

import type { CopyOrder, HeldCopy, Shard } from "#actors/blob-storage/ports/node-engine.ts"
import type { Members } from "#actors/blob-storage/ports/peers.ts"
import { erasureTools } from "#adapters/blob-storage/erasure.ts"
import { memoryEngine } from "#adapters/blob-storage/memory/engine.ts"
import { hostOf, placement } from "#placement"
import type { ReplicationPolicy } from "#schemas/blob-storage/blob.ts"
import { rebuildShards } from "../../erasure/rebuild.ts"
import { type RepairOptions, repair } from "../../repair/repair.ts"
import { rollbackGuard } from "../../rollback.ts"
import { makeNetwork } from "../simulation/network.ts"
import { makeWorld } from "../simulation/world.ts"
import { blobOf, type MadeBlob, shardBytes } from "./blob.ts"

export const hour_s = 3600
const vnodes_per_node = 8

/** Node `x.1` is on host `x`; any other node has its own host. */
const peerOf = (node_id: string) => ({ node_id, address: `${node_id.split(".")[0]}.test:1` })

interface Ring {
  readonly ring_version: number
  readonly active: ReadonlyArray<string>
  readonly leaving: ReadonlyArray<string>
  /** Unix nanoseconds; undefined: a node is offline. */
  readonly all_online_since?: bigint | undefined
}

const drawn = new Map<string, ReturnType<typeof placement>>()

const tableOf = (active: ReadonlyArray<string>) => {
  const key = active.join()
  const nodes = active.map((node_id) => ({
    node_id,
    weight_percent: 100,
    host: hostOf(peerOf(node_id).address),
  }))
  const table = drawn.get(key) ?? placement({ ring_version: 0, vnodes_per_node, nodes })
  drawn.set(key, table)
  return table
}

const membersOf = (
  node_id: string,
  { ring_version, active, leaving, all_online_since }: Ring,
): Members => ({
  node_id,
  ring_version,
  active: active.map(peerOf),
  leaving: leaving.map(peerOf),
  is_leaving: leaving.includes(node_id),
  all_online_since,
  placement: { ...tableOf(active), ring_version },
})

/** Options of a test's world. */
export interface WorldOptions
  extends Partial<Pick<RepairOptions, "repair_bytes_per_second" | "pauseAfter">> {
  readonly seed?: number
  /** How far each node's clock is ahead, in milliseconds. */
  readonly skew_ms?: Readonly<Record<string, number>>
}

/** The state that the nodes of a world share, and that it may change. */
const makeStage = (names: ReadonlyArray<string>, options: WorldOptions) => {
  const world = makeWorld(options.seed ?? 1)
  const network = makeNetwork(world)
  let ring: Ring = {
    ring_version: 1,
    active: [...names].sort(),
    leaving: [],
    all_online_since: 0n,
  }
  /** Nodes that do not know the newest ring yet. */
  const old_rings = new Map<string, Ring>()
  const cut_off = new Set<string>()
  return {
    world,
    network,
    options,
    problems: [] as Array<string>,
    /** The members as the node knows them; all but the slow nodes know the newest ring. */
    members: (node_id: string) => membersOf(node_id, old_rings.get(node_id) ?? ring),
    /** Changes the ring; the nodes in `slow` learn of it later. */
    setRing: (change: Partial<Omit<Ring, "ring_version">>, slow: ReadonlyArray<string> = []) => {
      for (const name of slow) if (!old_rings.has(name)) old_rings.set(name, ring)
      ring = { ...ring, ...change, ring_version: ring.ring_version + 1 }
    },
    hear: (name: string) => void old_rings.delete(name),
    /** Nodes to which the log reports a newer ring that they do not know. */
    isCurrent: async (node_id: string) => {
      if (cut_off.has(node_id)) throw new Error("the log cannot be asked")
      return !old_rings.has(node_id)
    },
    /** Nodes that cannot reach the log. */
    cutOff: (name: string) => void cut_off.add(name),
  }
}

type Stage = ReturnType<typeof makeStage>

const makeNode = (node_id: string, stage: Stage) => {
  const { world, network, options, problems, members, isCurrent } = stage
  const { repair_bytes_per_second = 2 ** 30, skew_ms = {}, pauseAfter = () => 0 } = options
  const now = () => world.now() + BigInt(skew_ms[node_id] ?? 0) * 1_000_000n
  const timing = { now, after: world.after }
  const engine = memoryEngine({ clock: now })
  const guard = rollbackGuard(engine, timing)
  const peers = network.peersOf({ node_id, isUp: () => true })
  const own_members = () => members(node_id)
  const parts = {
    local: engine,
    guard,
    peers,
    members: own_members,
    timing,
    ...erasureTools(),
  }
  const repairs = repair({
    ...parts,
    isCurrent: () => isCurrent(node_id),
    rebuild: (order) => rebuildShards(parts, order),
    report: (problem) => void problems.push(`${node_id}: ${problem}`),
    sweep_seconds: 600,
    repair_bytes_per_second,
    pauseAfter,
    release_after_seconds: hour_s,
  })
  const ringVersion = () => own_members().ring_version
  const { keeps } = repairs
  network.attach({ node_id, engine, isUp: () => true, now, guard, keeps, ringVersion })
  return { node_id, engine, repairs, now }
}

type WorldNode = ReturnType<typeof makeNode>

const copyAt = async ({ engine }: WorldNode, { id }: MadeBlob): Promise<HeldCopy | undefined> => {
  const [copy] = await engine.copiesOf([id])
  return copy === undefined || copy.kind === "tombstone" ? undefined : copy
}

/** Stores a copy on a node, as if by a put or by another node. */
const storeOn = async (
  { engine, now }: WorldNode,
  blob: MadeBlob,
  shard: Shard | undefined,
  created_at: bigint,
) => {
  const { id, checksum, bytes, policy } = blob
  const origin = { actor: "test", request_id: "", correlation_id: "" }
  const part = shard === undefined ? bytes : shardBytes(blob, shard)
  const order: CopyOrder = {
    id,
    checksum,
    size: bytes.length,
    policy,
    created_at,
    shard,
    origin,
    labels: { made: "by a test" },
  }
  const receiving = engine.receive(order, part.length)
  await receiving.write(part)
  await receiving.finish(now())
}

export const makeRepairWorld = (names: ReadonlyArray<string>, options: WorldOptions = {}) => {
  const stage = makeStage(names, options)
  const { world, network, problems, setRing, hear, cutOff, members } = stage
  const nodes = new Map(names.map((name) => [name, makeNode(name, stage)]))
  const node = (name: string) => {
    const found = nodes.get(name)
    if (found === undefined) throw new Error(`no node ${name}`)
    return found
  }
  const put_at = new Map<string, bigint>()
  const sweep = (name: string) => world.until(node(name).repairs.sweep())
  const copyOf = (name: string, blob: MadeBlob) => copyAt(node(name), blob)
  /** Each node's copy of the blob, by node id. */
  const held = async (blob: MadeBlob) => {
    const copies = await Promise.all(names.map((name) => copyOf(name, blob)))
    return names.flatMap((name, at) => {
      const copy = copies[at]
      return copy === undefined ? [] : [{ name, copy }]
    })
  }
  return {
    world,
    network,
    node,
    setRing,
    hear,
    cutOff,
    copyOf,
    problems,
    sweep,
    /** A copy of the blob's first put, or of a put at another time. */
    give: (name: string, blob: MadeBlob, shard?: Shard, created_at?: bigint) => {
      const first = put_at.get(blob.id) ?? world.now()
      put_at.set(blob.id, first)
      return storeOn(node(name), blob, shard, created_at ?? first)
    },
    /** Advances the clock. */
    sleep: (seconds: number) => world.until(world.pause(seconds * 1000)),
    /** Runs a sweep on each node in turn. */
    sweepAll: async (rounds = 1) => {
      for (let round = 0; round < rounds; round++) for (const name of names) await sweep(name)
    },
    blob: (text: string, policy: ReplicationPolicy) => blobOf(text, policy),
    ownersOf: ({ id }: MadeBlob, count: number) => {
      const { placement: table } = members("")
      return table.ownersOf(table.partitionOf(id), count)
    },
    holders: async (blob: MadeBlob) => (await held(blob)).map(({ name }) => name),
    /** The shard of each node. */
    shards: async (blob: MadeBlob) =>
      new Map(
        (await held(blob)).flatMap(({ name, copy: { shard } }) =>
          shard === undefined ? [] : [[name, shard.index] as const],
        ),
      ),
  }
}

export type RepairWorld = ReturnType<typeof makeRepairWorld>
