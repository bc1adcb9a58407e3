/** What runs on a node of the simulated cluster: the real thing, or one that is made for tests. */
import type { BlobOrigin } from "#actors/blob-storage/ports/admission.ts"
import type {
  BlobRange,
  BlobReading,
  PutAnswer,
  PutOrder,
} from "#actors/blob-storage/ports/engine.ts"
import type { NodeEngine } from "#actors/blob-storage/ports/node-engine.ts"
import type { Members, Peers } from "#actors/blob-storage/ports/peers.ts"
import type { BlobId } from "#schemas/blob-storage/blob.ts"
import type { Timing } from "../../timing.ts"
import type { Host } from "./wires.ts"

/** What one life of a node's process is given. */
export interface SoftwareParts {
  readonly local: NodeEngine
  readonly peers: Peers
  readonly members: () => Members
  /** Whether the log, asked now, knows no more of the members; rejects where it is cut off. */
  readonly isCurrent: () => Promise<boolean>
  readonly timing: Timing
  /** Tells the cluster that this node has nothing left to move; false where that was not heard. */
  readonly confirmLeave: () => boolean
  readonly report: (problem: string) => void
}

export interface Software extends Pick<Host, "guard" | "keeps"> {
  readonly put: (
    order: PutOrder,
    parts: ReadonlyArray<Uint8Array>,
    at: bigint,
  ) => Promise<PutAnswer>
  readonly get: (id: BlobId, range: BlobRange, at: bigint) => Promise<BlobReading>
  /** Deletes on this node. */
  readonly delete: (id: BlobId, origin: BlobOrigin, at: bigint) => Promise<void>
  readonly deleteClusterWide: (id: BlobId, origin: BlobOrigin, at: bigint) => Promise<void>
  /** Begins what runs by itself. */
  readonly start: () => void
}

export type MakeSoftware = (parts: SoftwareParts) => Software

/** A sweep each so many seconds: fewer than outside, where an hour has more than fits here. */
export const sweep_seconds = 30
/** A copy that is nobody's is not let go before it has been here for so long. */
export const release_after_seconds = 30
