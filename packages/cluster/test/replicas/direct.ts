/** Nodes in one process, in real time. Each reaches the others immediately or not at all. */

import type { NodeEngine } from "#actors/blob-storage/ports/node-engine.ts"
import type { Peer, Peers } from "#actors/blob-storage/ports/peers.ts"
import { blobHasher } from "#adapters/blob-storage/blob-hasher.ts"
import { memoryEngine } from "#adapters/blob-storage/memory/engine.ts"
import { copyBytes } from "#volume"
import { peerFailure } from "../../peer-failure.ts"
import { clusterEngine } from "../../replicas/engine.ts"
import { type RollbackGuard, rollbackGuard } from "../../rollback.ts"
import type { Timing } from "../../timing.ts"
import { failureOf } from "../simulation/links.ts"
import { membersOf, namesOf, openCode, pool } from "./nodes.ts"

export interface Host {
  readonly local: NodeEngine
  readonly guard: RollbackGuard
}

export const timing: Timing = {
  now: () => BigInt(Date.now()) * 1_000_000n,
  after: (ms, run) => {
    const timer = setTimeout(run, ms)
    return () => clearTimeout(timer)
  },
}

/** The other nodes, called directly; offline ones cannot be reached. */
export const directPeers = (hosts: ReadonlyMap<string, Host>, down: ReadonlySet<string>): Peers => {
  const call = async <A>({ node_id }: Peer, work: (host: Host) => Promise<A>) => {
    const host = hosts.get(node_id)
    if (host === undefined || down.has(node_id)) {
      throw peerFailure("UNAVAILABLE", `${node_id} cannot be reached`)
    }
    return work(host).catch((cause: unknown) => {
      throw failureOf(cause)
    })
  }
  return {
    send: (peer, order, bytes) =>
      call(peer, async ({ guard }) => {
        const receiving = guard.receive(order, copyBytes(order.size, order.shard))
        try {
          for await (const part of bytes) await receiving.write(part)
          return await receiving.finish(timing.now())
        } finally {
          await receiving.abort()
        }
      }),
    fetch: (peer, id, range) =>
      call(peer, async ({ local }) => {
        const { copy, meta, data, windows } = await local.read(id, range, timing.now())
        const one = async function* () {
          if (data !== undefined) yield data
        }
        return { copy, meta, bytes: data === undefined ? windows() : one() }
      }),
    rollBack: (peer, id, created_at) => call(peer, ({ guard }) => guard.rollBack(id, created_at)),
    renew: (peer, id, put_at) => call(peer, ({ guard }) => guard.renew(id, put_at, timing.now())),
    deleteClusterWide: (peer, id, origin, deleted_at) =>
      call(peer, ({ local }) => local.deleteClusterWide(id, origin, deleted_at)),
    copiesOf: (peer, ids) => call(peer, ({ guard }) => guard.copiesOf(ids)),
    keeps: (peer, ids) => call(peer, async () => ids.map(() => false)),
    ringVersion: (peer) => call(peer, async () => 1),
    copies: (peer, after, until, limit) =>
      call(peer, ({ local }) => local.copies(after, until, limit)),
  }
}

/** The nodes by id, and the offline ones, which a test may change. */
export const directNodes = (count: number) => {
  const names = namesOf(count)
  const down = new Set<string>()
  const hosts = new Map<string, Host>()
  const peers = directPeers(hosts, down)
  const nodes = names.map((node_id) => {
    const local = memoryEngine()
    const guard = rollbackGuard(local, timing)
    hosts.set(node_id, { local, guard })
    const members = membersOf(node_id, names)
    const engine = clusterEngine({
      local,
      guard,
      peers,
      timing,
      openCode,
      hasher: blobHasher,
      pool,
      members: () => members,
      hint: () => undefined,
      report: () => undefined,
    })
    return { node_id, local, engine }
  })
  return { nodes, down }
}
