/** Blobs that puts and gets report to the repair, ahead of its next sweep. */
import type { BlobId } from "#schemas/blob-storage/blob.ts"

export interface RepairHint {
  readonly id: BlobId
  /**
   * "replication": a put could not store its copy or shard on `nodes`. "missing": this node is an
   * owner without a copy. "corrupt": the local copy was quarantined.
   */
  readonly why: "replication" | "missing" | "corrupt"
  readonly nodes: ReadonlyArray<string>
}

/** Accepts a hint without waiting; never throws. */
export type Hint = (hint: RepairHint) => void
