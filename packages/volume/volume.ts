/** A store of content-addressed blobs on one disk. */
export { openVolume, type VolumeEngine } from "./engine.ts"
export { defaultFloor, floorOf } from "./free-space/floor.ts"
export { holdFolder, volumeFolder } from "./lock.ts"
export { makeIndex } from "./lookup/map.ts"
export { volumeMetrics } from "./metrics.ts"
export { admitCopy, copyBytes, orderFault, putAtIn } from "./writes/copy-admission.ts"
export { sizeOf } from "./writes/puts.ts"
