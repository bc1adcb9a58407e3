/** Reed-Solomon erasure coding of blobs in stripes. */
export { type ErasureCode, erasureCode, parity_shards } from "./code.ts"
export { step_bytes } from "./kernel.ts"
export {
  dataOfStripe,
  type GivenUnits,
  joined,
  rebuiltUnits,
  type Striping,
  stripeEncoder,
  stripesOf,
  striping,
  type Units,
  unit_bytes,
} from "./stripes.ts"
