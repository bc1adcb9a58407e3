/** Placement of blobs on nodes: a ring, and a partition table drawn from it. See README.md. */
export { copiesInOne, domainsOf, hostOf, sharesOf } from "./failure-domain.ts"
export { owners_max, type Placement, placement } from "./partitions.ts"
export {
  placeOfBlob,
  placeOfPoint,
  pointsOf,
  type RingDescription,
  type RingNode,
  ring,
  weightPercent,
} from "./ring.ts"
