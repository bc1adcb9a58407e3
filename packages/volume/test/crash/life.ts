/** One life of a volume in crash tests: its operations, and the refusals that are legitimate. */
import assert from "node:assert/strict"
import { type BlobFault, faultOf } from "#actors/blob-storage/ports/fault.ts"
import type { NodeEngine } from "#actors/blob-storage/ports/node-engine.ts"
import type { BlobOrigin } from "#actors/blob-storage/ports/origin.ts"
import type { Seeded } from "../../../../test/world/seeded.ts"
import type { Change, Entry, Model } from "./model.ts"

/** An engine with the upkeep that normally runs in the background. */
export interface CrashEngine extends NodeEngine {
  readonly compact: () => Promise<unknown>
  readonly reclaim: (wait_ms: number) => Promise<unknown>
  readonly scrub: () => Promise<unknown>
  readonly status: () => { readonly damaged_batches: number }
}

export interface Life {
  readonly random: Seeded
  readonly engine: CrashEngine
  readonly model: Model
  /** The next timestamp, in Unix nanoseconds. It may stand still, and sometimes goes back. */
  readonly at: () => bigint
  /** Legitimate refusals of changes in this life, in addition to those of the port's rules. */
  readonly excuses: ReadonlySet<BlobFault["_tag"]>
  /** Whether files were damaged, so that facts may be missing. */
  readonly isDamaged: () => boolean
  /** Deletes that must succeed although the disk is full. */
  readonly reserve: { deletes: number }
  readonly note: (line: string) => void
  readonly isOver: () => boolean
}

export const origin: BlobOrigin = { actor: "crash", request_id: "r-1", correlation_id: "c-1" }

const piece_bytes_max = 30_000

/** The result, or the fault that rejects the promise. */
export const faultIn = async <A>(
  work: Promise<A>,
): Promise<{ answer: A } | { fault: BlobFault }> => {
  try {
    return { answer: await work }
  } catch (cause) {
    const fault = faultOf(cause)
    if (fault._tag !== "BlobStoreFailed" || (cause instanceof Error && "fault" in cause)) {
      return { fault }
    }
    if (cause instanceof Error && "code" in cause) return { fault }
    throw cause
  }
}

/** Parts of the bytes, as copies. */
export const cut = (random: Seeded, bytes: Uint8Array): ReadonlyArray<Uint8Array> => {
  const parts: Array<Uint8Array> = []
  for (let at = 0; at < bytes.length; ) {
    const end = Math.min(bytes.length, at + random.between(1, piece_bytes_max))
    parts.push(bytes.slice(at, end))
    at = end
  }
  return parts
}

/** A refused change, which must be legitimate in this life. */
export const refuse = (life: Life, entry: Entry, change: Change, fault: BlobFault) => {
  life.note(`${change} ${entry.content.id.slice(0, 8)}: ${fault._tag}`)
  const detail = "detail" in fault ? fault.detail : ""
  assert(life.excuses.has(fault._tag), `${change} answered ${fault._tag}: ${detail}`)
  const is_full = fault._tag === "BlobCapacityExceeded"
  const is_due = is_full && change === "delete" && life.reserve.deletes > 0
  assert(!is_due, `a delete is refused: ${detail}`)
  if (is_full) entry.refused(change)
  else entry.doubted(change)
}
