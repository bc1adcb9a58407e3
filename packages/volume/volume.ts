/**
 * The volume: content-addressed blobs on one disk, in an append-only log and in extents.
 *
 * Read `README.md` for the terms and the order of reading. Nothing outside this package imports
 * another file of it.
 */

export { makeIndex } from "./blob-index/blob-index.ts"
export { openVolume, type VolumeEngine } from "./engine.ts"
export { defaultFloor, floorOf } from "./free-space/floor.ts"
export { holdFolder, volumeFolder } from "./lock.ts"
export { volumeMetrics } from "./metrics.ts"
export { admitCopy, copyBytes, orderFault, putAtIn } from "./writes/copy-admission.ts"
export {
  type Admission,
  admit,
  type OfferedBlob,
  type PresentBlob,
} from "./writes/put-admission.ts"
export { sizeOf } from "./writes/puts.ts"
