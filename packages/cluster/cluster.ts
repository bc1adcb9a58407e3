/** The data plane of several nodes: puts, gets, erasure coding and repair. */
export {
  type BlobHasher,
  type ErasureParts,
  type PieceMemory,
  piece_bytes,
} from "./erasure/layout.ts"
export { rebuildShards } from "./erasure/rebuild.ts"
export { isPeerFailure, type PeerFailure, peerCodeOf, peerFailure } from "./peer-failure.ts"
export { repair } from "./repair/repair.ts"
export { clusterEngine } from "./replicas/engine.ts"
export { takeBackGuard } from "./take-back.ts"
export type { Timing } from "./timing.ts"
