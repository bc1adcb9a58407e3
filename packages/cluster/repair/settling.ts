/**
 * Blobs that were too young to say anything of them, since a put may still be at work on them. They
 * alone are looked at again once they are not: a sweep in their place would look at all that is
 * here, again and again for as long as anything is put.
 *
 * Decision 0126.
 */
import type { BlobId } from "#schemas/blob-storage/blob.ts"
import { hints_max } from "./queue.ts"
import { settle_ns } from "./view.ts"

/** Those that were found together, and when they are not young any more. */
interface Young {
  readonly ids: ReadonlyArray<BlobId>
  readonly due: bigint
}

export const makeSettling = (size_max = hints_max) => {
  let waiting: Array<Young> = []
  let size = 0
  let has_lost = false
  return {
    /** A sweep begins, which finds them all again. */
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
    /** The next that were found together, if they are due; none else. */
    take: (now: bigint): ReadonlyArray<BlobId> => {
      const [first] = waiting
      if (first === undefined || first.due > now) return []
      waiting.shift()
      size -= first.ids.length
      return first.ids
    },
    /** Whether there was no room for some: the next sweep has to find them. */
    hasLost: () => has_lost,
  }
}

export type Settling = ReturnType<typeof makeSettling>
