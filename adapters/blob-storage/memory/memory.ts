/**
 * BlobStore in memory: the promises of the port without a disk, for tests and for trying things
 * out.
 */
import { Layer } from "effect"
import { BlobStore } from "#actors/blob-storage/blobs/store.ts"
import { storeOf } from "#adapters/blob-storage/blob-volume.ts"
import { memoryEngine } from "./engine.ts"

export interface BlobMemoryOptions {
  readonly capacity_bytes: number
  /** The largest blob; 5 TiB unless given. */
  readonly size_max_bytes?: number
}

/** BlobStore in memory, empty at first and gone at the end. */
export const blobMemory = (options: BlobMemoryOptions) =>
  Layer.sync(BlobStore, () => storeOf(memoryEngine(options)))
