/**
 * Blobs that were too recent to inspect, because a put may still be storing them. They are
 * inspected again once they have settled. Running another sweep instead would inspect all local
 * copies, over and over while there are puts.
 */
import type { BlobId } from "#schemas/blob-storage/blob.ts"
import { hints_max } from "./queue.ts"
import { settle_ns } from "./view.ts"

/** Blobs found together, and the time at which they have settled. */
interface SettlingGroup {
  readonly ids: ReadonlyArray<BlobId>
  readonly due: bigint
}

export const makeSettling = (size_max = hints_max) => {
  let waiting: Array<SettlingGroup> = []
  let size = 0
  let has_lost = false
  return {
    /** Forgets all blobs: the sweep that begins finds them again. */
    clear: () => {
      waiting = []
      size = 0
      has_lost = false
    },
    add: (ids: ReadonlyArray<BlobId>, now: bigint) => {
      if (ids.length === 0) return
      if (size + ids.length > size_max) {
        has_lost = true
        return
      }
      size += ids.length
      waiting.push({ ids, due: now + settle_ns })
    },
    /** The oldest group, if it is due. */
    take: (now: bigint): ReadonlyArray<BlobId> => {
      const [first] = waiting
      if (first === undefined || first.due > now) return []
      waiting.shift()
      size -= first.ids.length
      return first.ids
    },
    /** Whether some did not fit, so that the next sweep must find them. */
    hasLost: () => has_lost,
  }
}

export type Settling = ReturnType<typeof makeSettling>
