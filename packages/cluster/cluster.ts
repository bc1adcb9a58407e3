/** The data plane of a cluster: puts, gets, erasure coding and repair across nodes. */
export {
  type BlobHasher,
  type ErasureParts,
  type PiecePool,
  piece_bytes,
} from "./erasure/layout.ts"
export { rebuildShards } from "./erasure/rebuild.ts"
export { isPeerFailure, type PeerFailure, peerCodeOf, peerFailure } from "./peer-failure.ts"
export { repair } from "./repair/repair.ts"
export { clusterEngine } from "./replicas/engine.ts"
export { rollbackGuard } from "./rollback.ts"
export type { Timing } from "./timing.ts"
