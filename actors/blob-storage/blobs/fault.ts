/**
 * How a store's engine says what went wrong: the port's errors as plain data, since a hot route and
 * a link between nodes want no class.
 */
import type { BlobId } from "#schemas/blob-storage/blob.ts"
import { causeText } from "#schemas/cause-text.ts"

export type BlobFault =
  /** `not_asked`: members that are offline, of whom nobody knows what they have. */
  | {
      readonly _tag: "BlobNotFound"
      readonly id: BlobId
      readonly not_asked?: ReadonlyArray<string>
    }
  | { readonly _tag: "BlobCorrupt"; readonly id: BlobId; readonly detail: string }
  | { readonly _tag: "BlobAlreadyExists"; readonly id: BlobId; readonly detail: string }
  | { readonly _tag: "BlobIdMismatch"; readonly expected: BlobId; readonly actual: BlobId }
  /** A copy from another node was deleted here after it was made. Unix nanoseconds. */
  | { readonly _tag: "BlobDeletedHere"; readonly id: BlobId; readonly deleted_at: bigint }
  | { readonly _tag: "BlobTooLarge"; readonly bytes_max: number }
  | { readonly _tag: "BlobCapacityExceeded"; readonly detail: string }
  | { readonly _tag: "BlobStoreReadOnly"; readonly detail: string }
  | { readonly _tag: "BlobStoreFailed"; readonly detail: string }
  | { readonly _tag: "BlobTooFewNodes"; readonly have: number; readonly need: number }
  /** `is_full`: for want of room alone. */
  | { readonly _tag: "BlobShardsFailed"; readonly detail: string; readonly is_full?: boolean }
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
