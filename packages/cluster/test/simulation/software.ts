/** The software of a simulated node: the real one, or a variant for tests. */

import type {
  BlobRange,
  BlobReading,
  PutOrder,
  PutResult,
} from "#actors/blob-storage/ports/engine.ts"
import type { NodeEngine } from "#actors/blob-storage/ports/node-engine.ts"
import type { BlobOrigin } from "#actors/blob-storage/ports/origin.ts"
import type { Members, Peers } from "#actors/blob-storage/ports/peers.ts"
import type { BlobId } from "#schemas/blob-storage/blob.ts"
import type { Timing } from "../../timing.ts"
import type { Host } from "./links.ts"

/** The parameters of one life of a node's process. */
export interface SoftwareParts {
  readonly local: NodeEngine
  readonly peers: Peers
  readonly members: () => Members
  /** Whether the log, read now, has no news of the members; rejects if the node is cut off. */
  readonly isCurrent: () => Promise<boolean>
  readonly timing: Timing
  /** Reports that this node has nothing left to move; false if the report was lost. */
  readonly confirmLeave: () => boolean
  readonly report: (problem: string) => void
}

export interface Software extends Pick<Host, "guard" | "keeps"> {
  readonly put: (
    order: PutOrder,
    parts: ReadonlyArray<Uint8Array>,
    at: bigint,
  ) => Promise<PutResult>
  readonly get: (id: BlobId, range: BlobRange, at: bigint) => Promise<BlobReading>
  /** Deletes on this node only. */
  readonly delete: (id: BlobId, origin: BlobOrigin, at: bigint) => Promise<void>
  readonly deleteClusterWide: (id: BlobId, origin: BlobOrigin, at: bigint) => Promise<void>
  /** Starts the background work. */
  readonly start: () => void
}

export type MakeSoftware = (parts: SoftwareParts) => Software

/** Interval of sweeps in seconds: shorter than in production, to fit into a simulation. */
export const sweep_seconds = 30
/** Minimum age of a misplaced copy before it is released. */
export const release_after_seconds = 30
