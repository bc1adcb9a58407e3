/**
 * The erasure code on this machine: V8 takes two vectors of its kernels at once where the processor
 * has 32-byte registers, which is half the instructions. It does so only when it is told to.
 */
import { setFlagsFromString } from "node:v8"
import { type ErasureParts, type PiecePool, piece_bytes } from "#cluster"
import { type ErasureCode, erasureCode, step_bytes, unit_bytes } from "#erasure"
import { blobHasher } from "./blob-hasher.ts"

/**
 * An experiment of V8's: it changes which instructions a kernel becomes, and nothing that it says.
 * So each code is tried on known bytes before it is given out.
 */
const two_at_once = "--experimental-wasm-revectorize"

/** Turns until V8 has made its best of a kernel and runs it. */
const warm_up_turns = 1000

/** Bytes that a code is tried on: two of the blocks that a kernel works on, and a step more. */
const tried_bytes_max = 2048 + step_bytes

const sample = (shard: number, bytes: number) =>
  Uint8Array.from({ length: bytes }, (_, at) => Math.imul(at + 1, 2 * shard + 3))

/** Whether what was lost comes back as it was, after V8 has made its best of the kernels. */
const holds = (code: ErasureCode) => {
  const bytes = Math.min(code.shard_bytes_max, tried_bytes_max)
  const samples = Array.from({ length: code.data_shards }, (_, shard) => sample(shard, bytes))
  for (const [shard, given] of samples.entries()) code.shard(shard).set(given)
  for (let turn = 0; turn < warm_up_turns; turn++) {
    code.encode(bytes)
    code.rebuild([0, 1], bytes)
  }
  code.shard(0).fill(0)
  code.shard(1).fill(0)
  code.rebuild([0, 1], bytes)
  return samples.every((given, of) => {
    const shard = code.shard(of)
    return given.every((byte, at) => byte === shard[at])
  })
}

/** A code of `data_shards` and two parities, for shards of at most `shard_bytes_max`. */
export const openErasureCode = (data_shards: number, shard_bytes_max: number): ErasureCode => {
  setFlagsFromString(two_at_once)
  const code = erasureCode(data_shards, shard_bytes_max)
  if (holds(code)) return code
  throw new Error("the erasure code does not hold on this processor: Node's V8 is at fault")
}

/** Memory that waits for the next uploads at most, 64 MiB: four of 16 MiB at once. */
const spare_pieces_max = 256

const piecePool = (): PiecePool => {
  const spare: Array<Uint8Array> = []
  return {
    acquire: () => spare.pop() ?? Buffer.allocUnsafeSlow(piece_bytes),
    release: (pieces) => {
      for (const { buffer } of pieces.slice(0, spare_pieces_max - spare.length)) {
        spare.push(new Uint8Array(buffer))
      }
    },
  }
}

/** What a process codes its blobs with: each code is opened when it is first asked for. */
export const erasureTools = (): Pick<ErasureParts, "openCode" | "hasher" | "pool"> => {
  const codes = new Map<number, ErasureCode>()
  const openCode = (data_shards: number) => {
    const known = codes.get(data_shards)
    if (known !== undefined) return known
    const opened = openErasureCode(data_shards, unit_bytes)
    codes.set(data_shards, opened)
    return opened
  }
  return { openCode, hasher: blobHasher, pool: piecePool() }
}
