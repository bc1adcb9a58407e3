/**
 * Verifies local copies for nodes that are about to release theirs, when too few other copies would
 * be left. Verification reads each copy at the repair's rate. If it takes longer than the caller
 * waits, the result is kept for its next request.
 *
 * Source: DECISIONS, document 1, integrity, graceful leave; decision 0125.
 */

import type { HeldCopy, NodeEngine } from "#actors/blob-storage/ports/node-engine.ts"
import type { BlobId } from "#schemas/blob-storage/blob.ts"
import type { Timing } from "../timing.ts"
import { verifyCopy } from "../verify.ts"
import type { Pace } from "./rate.ts"

export interface VerifierParts {
  readonly local: Pick<NodeEngine, "read">
  readonly timing: Timing
  /** Limits the rate of reads. */
  readonly pace: Pace
}

/** How long a request waits for verifications, in milliseconds; callers wait for 5 s or more. */
const wait_ms = 2000
/** Maximum number of verifications in progress or not yet collected. The oldest is dropped. */
const verifications_max = 1000

/** How long a verification is valid, from its start: it does not cover later damage to the disk. */
const valid_ns = 6n * 3600n * 1_000_000_000n

interface Verification {
  /** Identifies the verified copy: one that replaced it does not count. */
  readonly stored_at: bigint
  readonly started_at: bigint
  readonly is_intact: Promise<boolean>
}

export const makeVerifier = ({ local, timing, pace }: VerifierParts) => {
  const verifications = new Map<BlobId, Verification>()

  const verify = async ({ id, stored_at }: HeldCopy) => {
    const copy = await verifyCopy(local, id, timing.now(), pace)
    return copy.stored_at === stored_at
  }
  const start = (copy: HeldCopy) => {
    const [oldest] = verifications.keys()
    if (oldest !== undefined && verifications.size >= verifications_max)
      verifications.delete(oldest)
    // A failed read has quarantined the copy if it is corrupt.
    const is_intact = verify(copy).catch(() => false)
    verifications.set(copy.id, {
      stored_at: copy.stored_at,
      started_at: timing.now(),
      is_intact: is_intact,
    })
    return is_intact
  }
  const verificationOf = (copy: HeldCopy) => {
    const known = verifications.get(copy.id)
    const is_valid =
      known?.stored_at === copy.stored_at && timing.now() - known.started_at < valid_ns
    return is_valid ? known.is_intact : start(copy)
  }
  const timeout = () => {
    const { promise, resolve } = Promise.withResolvers<undefined>()
    return { promise, cancel: timing.after(wait_ms, () => resolve(undefined)) }
  }
  /** Returns the copies that were verified since the last request, and are intact. */
  return async (copies: ReadonlyArray<HeldCopy>): Promise<ReadonlySet<BlobId>> => {
    const intact = new Set<BlobId>()
    const { promise: is_late, cancel } = timeout()
    for (const copy of copies) {
      const is_intact = await Promise.race([verificationOf(copy), is_late])
      if (is_intact === undefined) break
      verifications.delete(copy.id)
      if (is_intact) intact.add(copy.id)
    }
    cancel()
    return intact
  }
}
