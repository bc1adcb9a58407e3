/**
 * The errors of BlobEngine as plain data, because direct routes and links between nodes need no
 * class.
 */
import type { BlobId } from "#schemas/blob-storage/blob.ts"
import { causeText } from "#schemas/cause-text.ts"

export type BlobFault =
  /** `not_asked`: offline members, whose blobs are unknown. */
  | {
      readonly _tag: "BlobNotFound"
      readonly id: BlobId
      readonly not_asked?: ReadonlyArray<string>
    }
  /** The copy does not match its checksums; it is out of the store by the time of this answer. */
  | { readonly _tag: "BlobCorrupt"; readonly id: BlobId; readonly detail: string }
  /** The identifier is stored, and the put requests something else than a repetition of it. */
  | { readonly _tag: "BlobAlreadyExists"; readonly id: BlobId; readonly detail: string }
  /** The bytes hash to another identifier than the put expected. */
  | { readonly _tag: "BlobIdMismatch"; readonly expected: BlobId; readonly actual: BlobId }
  /** A copy from another node was deleted here after it was made. Unix nanoseconds. */
  | { readonly _tag: "BlobDeletedHere"; readonly id: BlobId; readonly deleted_at: bigint }
  /** The bytes are more than one blob may hold. */
  | { readonly _tag: "BlobTooLarge"; readonly bytes_max: number }
  /** The store's capacity, or its disk, has no room for the bytes. */
  | { readonly _tag: "BlobCapacityExceeded"; readonly detail: string }
  /** A sync or a commit failed once: nothing is written until an operator has looked. */
  | { readonly _tag: "BlobStoreReadOnly"; readonly detail: string }
  /** The disk or the index failed this one request. */
  | { readonly _tag: "BlobStoreFailed"; readonly detail: string }
  /** An erasure code has fewer active nodes than shards. */
  | { readonly _tag: "BlobTooFewNodes"; readonly have: number; readonly need: number }
  /**
   * More shards of a put could not be stored than may be lost; those that were are taken back.
   * `is_full`: for want of room alone.
   */
  | { readonly _tag: "BlobShardsFailed"; readonly detail: string; readonly is_full?: boolean }
  /** Nodes that could not be asked may have it, and none that answered does. */
  | { readonly _tag: "BlobUnreachable"; readonly detail: string }

/** An Error to throw that carries the fault; `faultOf` takes it out again. */
export const thrown = (fault: BlobFault): Error => Object.assign(new Error(fault._tag), { fault })

/** The code that Node or SQLite gave an error, such as ENOSPC or SQLITE_FULL. */
export const codeOf = (cause: unknown): string =>
  cause instanceof Error && "code" in cause ? String(cause.code) : ""

/** Whether the disk refused for want of room: such a refusal is an answer, not a broken disk. */
export const isFull = (cause: unknown) =>
  ["ENOSPC", "EDQUOT", "SQLITE_FULL"].includes(codeOf(cause))

/** The fault that a thrown value carries, or the one that it amounts to. */
export const faultOf = (cause: unknown): BlobFault => {
  // Only `thrown` makes errors with a field of this name.
  if (cause instanceof Error && "fault" in cause) return cause.fault as BlobFault
  const detail = causeText(cause)
  if (isFull(cause)) return { _tag: "BlobCapacityExceeded", detail: `The disk is full: ${detail}` }
  return { _tag: "BlobStoreFailed", detail }
}

/** The reason in a fault, or in another error with a tag, as text. */
export const faultText = (fault: { readonly _tag: string; readonly detail?: string }) =>
  fault.detail ?? fault._tag
