/** What another node's refusal or absence is to this one. */

import type { BlobFault } from "#actors/blob-storage/blobs/fault.ts"

/** Why an exchange ended: the other side says so, or the connection is gone. */
export interface PeerFailure extends Error {
  /** A gRPC status name, such as NOT_FOUND. */
  readonly code: string
}

const name = "PeerFailure"

export const peerFailure = (code: string, detail: string): PeerFailure =>
  Object.assign(new Error(detail), { name, code })

export const isPeerFailure = (cause: unknown): cause is PeerFailure =>
  cause instanceof Error && cause.name === name

/** What a fault of a node's own store is to another node: INTERNAL where it is none of these. */
const codes: Partial<Readonly<Record<BlobFault["_tag"], string>>> = {
  BlobNotFound: "NOT_FOUND",
  BlobCorrupt: "DATA_LOSS",
  BlobAlreadyExists: "ALREADY_EXISTS",
  BlobDeletedHere: "FAILED_PRECONDITION",
  BlobTooLarge: "RESOURCE_EXHAUSTED",
  BlobCapacityExceeded: "RESOURCE_EXHAUSTED",
  BlobStoreReadOnly: "UNAVAILABLE",
}

export const peerCodeOf = ({ _tag }: BlobFault) => codes[_tag] ?? "INTERNAL"
