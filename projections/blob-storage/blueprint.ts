/** Blob storage's read model: its tables, and how they are maintained. */
import { Context, Layer } from "effect"
import { type NodeTables, node } from "#projections/blob-storage/node.ts"
import { type VolumeTables, volume } from "#projections/blob-storage/volume.ts"
import { type Blueprint, type ReadModel, readModel } from "#projections/read-model.ts"

export type BlobStorageTables = NodeTables & VolumeTables

export const blueprint: Blueprint<BlobStorageTables> = {
  service: "blob-storage",
  version: 2,
  part: "blob-storage",
  projections: [node, volume],
}

export class BlobStorageModel extends Context.Service<
  BlobStorageModel,
  ReadModel<BlobStorageTables>
>()("projections/BlobStorageModel") {
  /** Follows the log for the lifetime of the layer. */
  static readonly layer = Layer.effect(this, readModel(blueprint))
}
