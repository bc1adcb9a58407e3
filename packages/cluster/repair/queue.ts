/**
 * The blobs that something hinted at: each once, at most so many, and those that could not be
 * repaired again after a while. What is given up or does not fit is left to the sweep.
 */
import type { BlobId } from "#schemas/blob-storage/blob.ts"

/** Identifiers that wait: some 16 MB. */
export const hints_max = 100_000
/** Tries of one hint, the pauses between them doubling from a second: two minutes in all. */
const tries_max = 7
const pause_ns = 1_000_000_000n

export interface RepairQueue {
  readonly add: (id: BlobId) => void
  /** Takes up to `limit` that are due, those that came first before those that failed. */
  readonly take: (now: bigint, limit: number) => ReadonlyArray<BlobId>
  /** One that was taken could not be repaired: it comes again, unless it has had its tries. */
  readonly postpone: (id: BlobId, now: bigint) => void
  /** One that was taken is done with. */
  readonly settle: (id: BlobId) => void
  readonly size: () => number
  /** Whether any was given up or left out since this was asked last. */
  readonly hasLost: () => boolean
}

interface Later {
  readonly due: bigint
  readonly tries: number
}

export const makeRepairQueue = (size_max = hints_max): RepairQueue => {
  const fresh = new Set<BlobId>()
  const later = new Map<BlobId, Later>()
  /** How often each that is under way was tried before. */
  const taken = new Map<BlobId, number>()
  let has_lost = false

  const size = () => fresh.size + later.size
  return {
    size,
    add: (id) => {
      if (fresh.has(id) || later.has(id)) return
      if (size() < size_max) fresh.add(id)
      else has_lost = true
    },
    take: (now, limit) => {
      const ids: Array<BlobId> = []
      for (const id of fresh) {
        if (ids.length === limit) break
        ids.push(id)
        fresh.delete(id)
        taken.set(id, 0)
      }
      for (const [id, { due, tries }] of later) {
        if (ids.length === limit) break
        if (due > now) continue
        ids.push(id)
        later.delete(id)
        taken.set(id, tries)
      }
      return ids
    },
    postpone: (id, now) => {
      const tries = (taken.get(id) ?? 0) + 1
      taken.delete(id)
      if (fresh.has(id)) return
      if (tries >= tries_max || size() >= size_max) has_lost = true
      else later.set(id, { due: now + (pause_ns << BigInt(tries - 1)), tries })
    },
    settle: (id) => void taken.delete(id),
    hasLost: () => {
      const had_lost = has_lost
      has_lost = false
      return had_lost
    },
  }
}
