/**
 * Queue of hinted blobs, without duplicates and with bounded size. Failed repairs are retried with
 * backoff. Blobs that do not fit or run out of retries are left to the next sweep.
 */
import type { BlobId } from "#schemas/blob-storage/blob.ts"

/** Maximum number of queued identifiers: about 16 MB. */
export const hints_max = 100_000
/** Maximum attempts per hint. The pause doubles from one second: two minutes in all. */
const tries_max = 7
const pause_ns = 1_000_000_000n

export interface RepairQueue {
  readonly add: (id: BlobId) => void
  /** Takes up to `limit` due ids, new ones before retries. */
  readonly take: (now: bigint, limit: number) => ReadonlyArray<BlobId>
  /** Queues a taken id for a retry, unless its attempts are exhausted. */
  readonly postpone: (id: BlobId, now: bigint) => void
  /** Marks a taken id as repaired. */
  readonly settle: (id: BlobId) => void
  readonly size: () => number
  /** Whether any id was dropped since the last call. */
  readonly hasLost: () => boolean
}

interface Retry {
  readonly due: bigint
  readonly tries: number
}

export const makeRepairQueue = (size_max = hints_max): RepairQueue => {
  const new_ids = new Set<BlobId>()
  const retries = new Map<BlobId, Retry>()
  /** Previous attempts of the ids in progress. */
  const taken = new Map<BlobId, number>()
  let has_lost = false

  const size = () => new_ids.size + retries.size
  return {
    size,
    add: (id) => {
      if (new_ids.has(id) || retries.has(id)) return
      if (size() < size_max) new_ids.add(id)
      else has_lost = true
    },
    take: (now, limit) => {
      const ids: Array<BlobId> = []
      for (const id of new_ids) {
        if (ids.length === limit) break
        ids.push(id)
        new_ids.delete(id)
        taken.set(id, 0)
      }
      for (const [id, { due, tries }] of retries) {
        if (ids.length === limit) break
        if (due > now) continue
        ids.push(id)
        retries.delete(id)
        taken.set(id, tries)
      }
      return ids
    },
    postpone: (id, now) => {
      const tries = (taken.get(id) ?? 0) + 1
      taken.delete(id)
      if (new_ids.has(id)) return
      if (tries >= tries_max || size() >= size_max) has_lost = true
      else retries.set(id, { due: now + (pause_ns << BigInt(tries - 1)), tries })
    },
    settle: (id) => void taken.delete(id),
    hasLost: () => {
      const result = has_lost
      has_lost = false
      return result
    },
  }
}
