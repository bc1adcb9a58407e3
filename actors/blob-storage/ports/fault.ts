/** The errors of BlobEngine as plain data, because direct routes and node links need no classes. */
import type { BlobId } from "#schemas/blob-storage/blob.ts"
import { causeText } from "#schemas/cause-text.ts"

export type BlobFault =
  /** `not_asked`: offline members, whose blobs are unknown. */
  | {
      readonly _tag: "BlobNotFound"
      readonly id: BlobId
      readonly not_asked?: ReadonlyArray<string>
    }
  /** The copy does not match its checksums; it is already out of the store. */
  | { readonly _tag: "BlobCorrupt"; readonly id: BlobId; readonly detail: string }
  /** The identifier is stored, and the put is not a repetition of the stored one. */
  | { readonly _tag: "BlobAlreadyExists"; readonly id: BlobId; readonly detail: string }
  /** The bytes hash to a different identifier than the put expected. */
  | { readonly _tag: "BlobIdMismatch"; readonly expected: BlobId; readonly actual: BlobId }
  /** The copy was deleted here after it was made (Unix nanoseconds). */
  | { readonly _tag: "BlobDeletedHere"; readonly id: BlobId; readonly deleted_at: bigint }
  /** The bytes exceed the maximum size of a blob. */
  | { readonly _tag: "BlobTooLarge"; readonly bytes_max: number }
  /** The store's capacity, or its disk, has no room for the bytes. */
  | { readonly _tag: "BlobCapacityExceeded"; readonly detail: string }
  /** A sync or a commit failed: the store accepts no writes until an operator intervenes. */
  | { readonly _tag: "BlobStoreReadOnly"; readonly detail: string }
  /** The disk or the index failed this one request. */
  | { readonly _tag: "BlobStoreFailed"; readonly detail: string }
  /**
   * More shards of a put failed than the code tolerates; the stored ones are discarded. `is_full`:
   * only for lack of space.
   */
  | { readonly _tag: "BlobTooFewNodes"; readonly have: number; readonly need: number }
  /**
   * More shards of a put failed than the code tolerates; the stored ones are discarded. `is_full`:
   * only for lack of space.
   */
  | { readonly _tag: "BlobShardsFailed"; readonly detail: string; readonly is_full?: boolean }
  /** No responding node has the blob, but unreachable nodes may have it. */
  | { readonly _tag: "BlobUnreachable"; readonly detail: string }

/** An Error that carries the fault, for `faultOf`. */
export const faultError = (fault: BlobFault): Error =>
  Object.assign(new Error(fault._tag), { fault })

/** The error code of Node or SQLite, such as ENOSPC or SQLITE_FULL. */
export const codeOf = (cause: unknown): string =>
  cause instanceof Error && "code" in cause ? String(cause.code) : ""

/** Whether the disk is full, which is a regular response and not a broken disk. */
export const isFull = (cause: unknown) =>
  ["ENOSPC", "EDQUOT", "SQLITE_FULL"].includes(codeOf(cause))

/** The fault that a thrown value carries, or its nearest equivalent. */
export const faultOf = (cause: unknown): BlobFault => {
  // Only `faultError` makes errors with a field of this name.
  if (cause instanceof Error && "fault" in cause) return cause.fault as BlobFault
  const detail = causeText(cause)
  if (isFull(cause)) return { _tag: "BlobCapacityExceeded", detail: `The disk is full: ${detail}` }
  return { _tag: "BlobStoreFailed", detail }
}

/** The detail of a fault or of another tagged error. */
export const faultText = (fault: { readonly _tag: string; readonly detail?: string }) =>
  fault.detail ?? fault._tag
