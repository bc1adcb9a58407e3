/**
 * A plain cluster of replicas, as short as possible: it queries all nodes about each blob in turn.
 * The simulator is tested with it, and with deliberate mistakes in it.
 */

import type { BlobRange, BlobReading } from "#actors/blob-storage/ports/engine.ts"
import { faultError } from "#actors/blob-storage/ports/fault.ts"
import type { BlobOrigin } from "#actors/blob-storage/ports/origin.ts"
import type { BlobId } from "#schemas/blob-storage/blob.ts"
import { nodes_needed } from "#schemas/blob-storage/replication.ts"
import { isPeerFailure } from "../../peer-failure.ts"
import {
  type Copying,
  deadline_ms,
  fulfilled,
  isHeld,
  type Mistake,
  makeCopying,
  makeSweep,
} from "./naive-sweep.ts"
import { type Software, type SoftwareParts, sweep_seconds } from "./software.ts"

const watch_ms = 15_000

const joined = async (bytes: AsyncIterable<Uint8Array>, is_patient: boolean) => {
  const parts: Array<Uint8Array> = []
  try {
    for await (const part of bytes) parts.push(part)
  } catch (cause) {
    if (!is_patient) throw cause
  }
  return new Uint8Array(Buffer.concat(parts))
}

/** A get that queries all other nodes in turn. */
const makeGet = ({ local, peers }: SoftwareParts, { others }: Copying, mistake?: Mistake) => {
  const elsewhere = async (id: BlobId, range: BlobRange): Promise<BlobReading> => {
    for (const peer of others()) {
      try {
        const { copy, meta, bytes } = await peers.fetch(peer, id, range, deadline_ms)
        if (copy.shard !== undefined) continue
        const data = await joined(bytes, mistake === "returns incomplete bytes")
        async function* windows() {
          if (data.length > 0) yield data
        }
        return { meta, data, windows }
      } catch (cause) {
        if (!isPeerFailure(cause)) throw cause
      }
    }
    throw faultError({ _tag: "BlobNotFound", id })
  }
  return (id: BlobId, range: BlobRange, at: bigint) =>
    local.get(id, range, at).catch(() => elsewhere(id, range))
}

/** The plain cluster, or a variant with a mistake. */
export const naive =
  (mistake?: Mistake) =>
  (parts: SoftwareParts): Software => {
    const { local, peers, members, timing, confirmLeave } = parts
    const copying = makeCopying(parts)
    const { sweep, keeps } = makeSweep(parts, copying, mistake)
    let swept_version = -1
    let puts = 0
    const watch = async () => {
      const { ring_version, is_leaving } = members()
      if (ring_version !== swept_version || (is_leaving && mistake !== "sweeps once")) {
        swept_version = ring_version
        const is_done = await sweep().catch(() => false)
        if (is_leaving && ((is_done && puts === 0) || mistake === "leaves immediately"))
          confirmLeave()
      }
      timing.after(watch_ms, () => void watch())
    }
    const again = async () => {
      await sweep().catch(() => false)
      if (mistake !== "sweeps once") timing.after(sweep_seconds * 1000, () => void again())
    }
    return {
      put: async (order, bytes, at) => {
        if (members().is_leaving && mistake !== "leaves immediately") {
          throw faultError({ _tag: "BlobStoreReadOnly", detail: "This node is leaving." })
        }
        puts += 1
        const answer = await local.put(order, bytes, at).finally(() => {
          puts -= 1
        })
        // Existing copies belong to this put too.
        if (!answer.created) await local.renew(answer.id, at, at)
        const [copy] = await local.copiesOf([answer.id])
        if (!isHeld(copy) || mistake === "replicates nothing") return answer
        const owners = copying.ownersOf(copy).filter((peer) => peer.node_id !== members().node_id)
        const wanted = owners.slice(0, nodes_needed[copy.policy] - 1)
        await fulfilled(wanted.map((peer) => copying.push(peer, copy, "put").then(() => [])))
        return answer
      },
      get: makeGet(parts, copying, mistake),
      delete: local.delete,
      deleteClusterWide: async (id: BlobId, origin: BlobOrigin, at: bigint) => {
        await local.deleteClusterWide(id, origin, at)
        await fulfilled(
          copying
            .others()
            .map((peer) => peers.deleteClusterWide(peer, id, origin, at).then(() => [])),
        )
      },
      keeps,
      start: () => {
        timing.after(1000, () => void watch())
        timing.after(1000, () => void again())
      },
    }
  }
