/**
 * Decides a put if its identifier may already be stored. Pure.
 *
 * Source: document 1 §1, §7 ALREADY_EXISTS; DECISIONS, document 1, same content again.
 */
import type { BlobId, ReplicationPolicy } from "#schemas/blob-storage/blob.ts"

/** The properties of a completely received put that the rules need. */
export interface OfferedBlob {
  readonly id: BlobId
  readonly checksum: string
  readonly policy: ReplicationPolicy
  readonly expected_id: BlobId | undefined
  readonly if_none_match: boolean
}

/** The properties of the stored blob that the rules need. */
export interface PresentBlob {
  readonly checksum: string
  readonly policy: ReplicationPolicy
}

export type Admission =
  | { readonly verdict: "store" | "keep" }
  | { readonly verdict: "mismatch"; readonly expected: BlobId }
  | { readonly verdict: "exists"; readonly detail: string }

const exists = (detail: string): Admission => ({ verdict: "exists", detail })

/**
 * Returns whether to store the bytes, keep the stored blob, or reject the put. An unspecified
 * policy matches any stored policy.
 */
export const admit = (offered: OfferedBlob, present: PresentBlob | undefined): Admission => {
  if (offered.expected_id !== undefined && offered.expected_id !== offered.id) {
    return { verdict: "mismatch", expected: offered.expected_id }
  }
  if (present === undefined) return { verdict: "store" }
  if (present.checksum !== offered.checksum) {
    return exists("Different bytes with the same 16-byte identifier are already stored.")
  }
  if (offered.if_none_match) return exists("The blob already exists, and If-None-Match is *.")
  if (offered.policy === "REPLICATION_POLICY_UNSPECIFIED" || offered.policy === present.policy) {
    return { verdict: "keep" }
  }
  return exists(`The blob is stored with ${present.policy}, which cannot be changed.`)
}
