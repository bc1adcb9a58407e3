/** Reed-Solomon coding of blobs: 4 or 8 data shards and two parity shards, in stripes. */
export { type ErasureCode, erasureCode, parity_shards } from "./code.ts"
export { step_bytes } from "./kernel.ts"
export {
  type AvailableUnits,
  dataOfStripe,
  joined,
  rebuiltUnits,
  type Striping,
  stripeEncoder,
  stripesOf,
  striping,
  type Units,
  unit_bytes,
} from "./stripes.ts"
