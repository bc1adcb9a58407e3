/** What puts and gets meet that the repair is to look at before its next sweep. */
import type { BlobId } from "#schemas/blob-storage/blob.ts"

export interface RepairHint {
  readonly id: BlobId
  /**
   * "replication": a put could not store its copy or shard on `nodes`. "missing": this node is an
   * owner, and another had to answer. "corrupt": the copy here was set aside.
   */
  readonly why: "replication" | "missing" | "corrupt"
  readonly nodes: ReadonlyArray<string>
}

/** Takes a hint: at once, and whatever comes of it. */
export type Hint = (hint: RepairHint) => void
