/**
 * Opens erasure codes with V8's revectorization, which halves the instructions on processors with
 * 32-byte registers. V8 enables it only with a flag.
 */
import { setFlagsFromString } from "node:v8"
import { type ErasureParts, type PiecePool, piece_bytes } from "#cluster"
import { type ErasureCode, erasureCode, step_bytes, unit_bytes } from "#erasure"
import { blobHasher } from "./blob-hasher.ts"

/**
 * An experimental flag of V8. It affects the generated instructions, not the results; each code is
 * still tested on known bytes before use.
 */
const revectorize_flag = "--experimental-wasm-revectorize"

/** Iterations until V8 has optimized a kernel. */
const warm_up_turns = 1000

/** Length of the test: two of the blocks that a kernel processes, plus a step. */
const test_bytes_max = 2048 + step_bytes

const sample = (shard: number, bytes: number) =>
  Uint8Array.from({ length: bytes }, (_, at) => Math.imul(at + 1, 2 * shard + 3))

/** Whether lost shards are reconstructed correctly by the optimized kernels. */
const isCorrect = (code: ErasureCode) => {
  const bytes = Math.min(code.shard_bytes_max, test_bytes_max)
  const samples = Array.from({ length: code.data_shards }, (_, shard) => sample(shard, bytes))
  for (const [shard, expected] of samples.entries()) code.shard(shard).set(expected)
  for (let turn = 0; turn < warm_up_turns; turn++) {
    code.encode(bytes)
    code.rebuild([0, 1], bytes)
  }
  code.shard(0).fill(0)
  code.shard(1).fill(0)
  code.rebuild([0, 1], bytes)
  return samples.every((expected, of) => {
    const shard = code.shard(of)
    return expected.every((byte, at) => byte === shard[at])
  })
}

/** Opens and tests a code for shards of up to `shard_bytes_max`. */
export const openErasureCode = (data_shards: number, shard_bytes_max: number): ErasureCode => {
  setFlagsFromString(revectorize_flag)
  const code = erasureCode(data_shards, shard_bytes_max)
  if (isCorrect(code)) return code
  throw new Error(
    "the erasure code returned wrong results on this processor, probably a bug of Node's V8",
  )
}

/** Maximum pooled memory, 64 MiB: four uploads of 16 MiB at once. */
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

/** The erasure dependencies of a process. Each code is opened on first use. */
export const erasureTools = (): Pick<ErasureParts, "openCode" | "hasher" | "pool"> => {
  const codes = new Map<number, ErasureCode>()
  const openCode = (data_shards: number) => {
    const known = codes.get(data_shards)
    if (known !== undefined) return known
    const code = openErasureCode(data_shards, unit_bytes)
    codes.set(data_shards, code)
    return code
  }
  return { openCode, hasher: blobHasher, pool: piecePool() }
}
