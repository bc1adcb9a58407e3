/**
 * What a put of bytes means where the same identifier may be stored already. Pure.
 *
 * Source: document 1 §1, §7 ALREADY_EXISTS; DECISIONS, document 1, same content again.
 */
import type { BlobId, ReplicationPolicy } from "#schemas/blob-storage/blob.ts"

/** Who asked, as the journal and then the audit log tell it. */
export interface BlobOrigin {
  readonly actor: string
  readonly request_id: string
  readonly correlation_id: string
}

/** The origin of what the store does by itself, such as setting a corrupt copy aside. */
export const store_origin: BlobOrigin = {
  actor: "system:blob-store",
  request_id: "",
  correlation_id: "",
}

/** What the rules need to know of a put whose bytes have ended. */
export interface OfferedBlob {
  readonly id: BlobId
  readonly checksum: string
  readonly policy: ReplicationPolicy
  readonly expected_id: BlobId | undefined
  readonly if_none_match: boolean
}

/** What the rules need to know of the blob that is there already. */
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
 * Whether to store the offered bytes, keep what is there as it is, or refuse.
 * An unspecified policy agrees with any that is stored.
 */
export const admit = (offered: OfferedBlob, present: PresentBlob | undefined): Admission => {
  if (offered.expected_id !== undefined && offered.expected_id !== offered.id) {
    return { verdict: "mismatch", expected: offered.expected_id }
  }
  if (present === undefined) return { verdict: "store" }
  if (present.checksum !== offered.checksum) {
    return exists("Other bytes with the same 16-byte identifier are stored.")
  }
  if (offered.if_none_match) return exists("The blob is stored already, and If-None-Match is *.")
  if (offered.policy === "REPLICATION_POLICY_UNSPECIFIED" || offered.policy === present.policy) {
    return { verdict: "keep" }
  }
  return exists(`The blob is stored with ${present.policy}, which cannot be changed.`)
}
