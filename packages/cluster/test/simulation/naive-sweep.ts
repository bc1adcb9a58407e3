/**
 * The background work of the plain cluster: inspects the local copies one by one, sends missing
 * copies, and releases misplaced ones.
 */

import type { Copy, CopyOrder, Deletion, HeldCopy } from "#actors/blob-storage/ports/node-engine.ts"
import { store_origin } from "#actors/blob-storage/ports/origin.ts"
import type { Peer, Reason } from "#actors/blob-storage/ports/peers.ts"
import type { BlobId } from "#schemas/blob-storage/blob.ts"
import { nodes_needed } from "#schemas/blob-storage/replication.ts"
import { isPeerFailure } from "../../peer-failure.ts"
import { release_after_seconds, type SoftwareParts } from "./software.ts"

export const deadline_ms = 5000
const page_limit = 100
const second_ns = 1_000_000_000n

/** The mistakes that can be built in. */
export type Mistake =
  | "replicates nothing"
  | "releases without confirmation"
  | "repairs nothing"
  | "sweeps once"
  | "ignores nodes that were offline"
  | "returns incomplete bytes"
  | "keeps misplaced copies"
  | "leaves immediately"

export const mistakes: ReadonlyArray<Mistake> = [
  "replicates nothing",
  "releases without confirmation",
  "repairs nothing",
  "sweeps once",
  "ignores nodes that were offline",
  "returns incomplete bytes",
  "keeps misplaced copies",
  "leaves immediately",
]

export const isHeld = (copy: Copy | undefined): copy is HeldCopy =>
  copy !== undefined && copy.kind !== "tombstone"

/** The results of those that succeed. */
export const fulfilled = async <A>(work: ReadonlyArray<Promise<A>>) =>
  (await Promise.allSettled(work)).flatMap((one) => (one.status === "fulfilled" ? one.value : []))

export const makeCopying = ({ local, peers, members, timing }: SoftwareParts) => {
  const others = () => {
    const { active, leaving, node_id } = members()
    return [...active, ...leaving].filter((peer) => peer.node_id !== node_id)
  }
  const ownersOf = ({ id, policy }: Pick<HeldCopy, "id" | "policy">) => {
    const { placement, active } = members()
    const wanted = placement.ownersOf(placement.partitionOf(id), nodes_needed[policy])
    return active.filter(({ node_id }) => wanted.includes(node_id))
  }
  const push = async (peer: Peer, copy: HeldCopy, reason: Reason) => {
    const { meta, windows, data } = await local.read(copy.id, {}, timing.now())
    const { id, checksum, size, policy, created_at, put_at, shard } = copy
    const order: CopyOrder = {
      id,
      checksum,
      size,
      policy,
      created_at,
      put_at,
      shard,
      labels: meta.labels,
      origin: store_origin,
    }
    return peers.send(peer, order, data === undefined ? windows() : [data], reason, deadline_ms)
  }
  return { others, ownersOf, push }
}
export type Copying = ReturnType<typeof makeCopying>

/** The nodes that should have a copy: the next owner stands in for one that deleted it. */
const makeHolders = (parts: SoftwareParts, { push }: Copying, mistake?: Mistake) => {
  const { local, peers, members } = parts
  /** Sends the copy; false if the node has deleted it locally and refuses it. */
  const isAccepted = (peer: Peer, copy: HeldCopy) =>
    push(peer, copy, "repair").then(
      () => true,
      (cause: unknown) => {
        if (isPeerFailure(cause) && cause.code === "FAILED_PRECONDITION") return false
        throw cause
      },
    )
  /** "over" after a cluster-wide deletion. */
  const look = async (peer: Peer, copy: HeldCopy) => {
    if (peer.node_id === members().node_id) return "has"
    const [there] = await peers.copiesOf(peer, [copy.id])
    if (there?.kind === "tombstone" && there.deleted_at >= copy.put_at) {
      if (!there.is_cluster_wide) return "refuses"
      await local.deleteClusterWide(copy.id, store_origin, there.deleted_at)
      return "over"
    }
    // A copy of an older put is renewed when it is sent again.
    const is_there = isHeld(there) && there.put_at >= copy.put_at
    if (is_there || mistake === "repairs nothing") return "has"
    return (await isAccepted(peer, copy)) ? "has" : "refuses"
  }
  return async (copy: HeldCopy): Promise<ReadonlyArray<Peer>> => {
    const { placement, active } = members()
    const ranked = placement.ownersOf(placement.partitionOf(copy.id), active.length)
    const wanted = nodes_needed[copy.policy]
    const holders: Array<Peer> = []
    if (mistake === "releases without confirmation") {
      return active.filter((peer) => ranked.slice(0, wanted).includes(peer.node_id))
    }
    for (const owner of ranked) {
      const peer = active.find((one) => one.node_id === owner)
      if (peer === undefined || holders.length === wanted) continue
      const found = await look(peer, copy)
      if (found === "over") return []
      if (found === "has") holders.push(peer)
    }
    return holders
  }
}

/** Releases a copy once all its owners confirm theirs for one ring version. */
const makeRelease = ({ local, peers, members, timing }: SoftwareParts, mistake?: Mistake) => {
  const releasing = new Set<BlobId>()
  const mayRelease = async ({ id }: HeldCopy, holders: ReadonlyArray<Peer>) => {
    const { ring_version } = members()
    const words = await Promise.all(
      holders.map((peer) => peers.keeps(peer, [id], ring_version, false)),
    )
    if (mistake === "releases without confirmation") return true
    return words.every(([kept]) => kept) && members().ring_version === ring_version
  }
  return {
    release: async (copy: HeldCopy, holders: ReadonlyArray<Peer>) => {
      const { node_id, is_leaving } = members()
      if (holders.length === 0 || holders.some((peer) => peer.node_id === node_id)) return false
      const age_seconds = (timing.now() - copy.stored_at) / second_ns
      if (!is_leaving && age_seconds < release_after_seconds) return false
      if (mistake === "keeps misplaced copies") return false
      releasing.add(copy.id)
      try {
        if (!(await mayRelease(copy, holders))) return false
        return await local.release(copy.id, copy.stored_at, timing.now())
      } finally {
        releasing.delete(copy.id)
      }
    },
    keeps: async (ids: ReadonlyArray<BlobId>, ring_version: number) => {
      const copies = await local.copiesOf(ids)
      const { placement, active, node_id, ring_version: version } = members()
      return copies.map((copy) => {
        if (!isHeld(copy) || version !== ring_version || releasing.has(copy.id)) return false
        const partition = placement.partitionOf(copy.id)
        return placement.ownersOf(partition, active.length).includes(node_id)
      })
    },
  }
}

/** One sweep of the local copies: sends missing copies and releases misplaced ones. */
export const makeSweep = (parts: SoftwareParts, copying: Copying, mistake?: Mistake) => {
  const { local, peers, members } = parts
  const holdersOf = makeHolders(parts, copying, mistake)
  const { release, keeps } = makeRelease(parts, mistake)

  const spread = async ({ id, deleted_at }: Deletion) => {
    if (mistake === "ignores nodes that were offline") return true
    const responses = await fulfilled(
      copying
        .others()
        .map((peer) =>
          peers.deleteClusterWide(peer, id, store_origin, deleted_at).then(() => [peer]),
        ),
    )
    return responses.length > 0
  }
  /** Whether nothing is left to do if this node leaves. */
  const process = async (copy: Copy) => {
    if (copy.kind === "tombstone") return copy.is_cluster_wide ? spread(copy) : true
    const is_gone = await holdersOf(copy).then(
      (holders) => release(copy, holders),
      () => false,
    )
    return is_gone || !members().is_leaving
  }
  /** Returns whether nothing was left to do. */
  const sweep = async () => {
    let is_done = true
    for (let after = ""; ; ) {
      const { copies, next } = await local.copies(after, "", page_limit)
      for (const copy of copies) is_done = (await process(copy)) && is_done
      if (next === undefined) return is_done
      after = next
    }
  }
  return { sweep, keeps }
}
