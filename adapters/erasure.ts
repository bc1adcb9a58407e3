/**
 * The erasure code on this machine: V8 takes two vectors of its kernels at once where the processor
 * has 32-byte registers, which is half the instructions. It does so only when it is told to.
 */
import { setFlagsFromString } from "node:v8"
import { type ErasureCode, erasureCode } from "#actors/blob-storage/erasure-code.ts"
import { step_bytes } from "#actors/blob-storage/erasure-kernel.ts"

/**
 * An experiment of V8's: it changes which instructions a kernel becomes, and nothing that it says.
 * So each code is tried on known bytes before it is given out.
 */
const two_at_once = "--experimental-wasm-revectorize"

/** Turns until V8 has made its best of a kernel and runs it. */
const warm_up_turns = 1000

const sample = (shard: number) =>
  Uint8Array.from({ length: step_bytes }, (_, at) => Math.imul(at + 1, 2 * shard + 3))

/** Whether what was lost comes back as it was, after V8 has made its best of the kernels. */
const holds = (code: ErasureCode) => {
  for (let shard = 0; shard < code.data_shards; shard++) code.shard(shard).set(sample(shard))
  for (let turn = 0; turn < warm_up_turns; turn++) {
    code.encode(step_bytes)
    code.rebuild([0, 1], step_bytes)
  }
  code.shard(0).fill(0)
  code.shard(1).fill(0)
  code.rebuild([0, 1], step_bytes)
  const [first, second] = [code.shard(0), code.shard(1)]
  const agrees = (shard: Uint8Array, of: number) =>
    sample(of).every((byte, at) => byte === shard[at])
  return agrees(first, 0) && agrees(second, 1)
}

/** A code of `data_shards` and two parities, for shards of at most `shard_bytes_max`. */
export const openErasureCode = (data_shards: number, shard_bytes_max: number): ErasureCode => {
  setFlagsFromString(two_at_once)
  const code = erasureCode(data_shards, shard_bytes_max)
  if (holds(code)) return code
  throw new Error("the erasure code does not hold on this processor: Node's V8 is at fault")
}
