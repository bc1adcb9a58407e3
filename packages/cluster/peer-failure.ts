/** Failures of calls to other nodes. */

import type { BlobFault } from "#actors/blob-storage/ports/fault.ts"

/** A call that another node refused, or whose connection was lost. */
export interface PeerFailure extends Error {
  /** A gRPC status name, such as NOT_FOUND. */
  readonly code: string
}

const name = "PeerFailure"

export const peerFailure = (code: string, detail: string): PeerFailure =>
  Object.assign(new Error(detail), { name, code })

export const isPeerFailure = (cause: unknown): cause is PeerFailure =>
  cause instanceof Error && cause.name === name

/**
 * The code that a node reports to its peers for a fault of its own store; INTERNAL for the rest.
 */
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
