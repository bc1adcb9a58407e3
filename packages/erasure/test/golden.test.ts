/** Hashes of the bytes that the first version of the kernels produced. */
import { createHash } from "node:crypto"
import { describe, expect, it } from "vitest"
import { noise } from "../../../test/contract/blob-storage/engine-bytes.ts"
import { erasureCode } from "../code.ts"

/** One step, one block of the rebuilding kernel and adjacent lengths, a unit, and odd multiples. */
const lengths = [64, 128, 960, 1024, 1088, 2048, 2112, 4096, 9024, 65_536]
/** Bytes after the coded part of a shard, which must not be written. */
const margin_bytes = 64

/** The hash of all shards after encoding, and after the loss of each one and each pair of them. */
const hashOf = (data_shards: number, bytes: number) => {
  const code = erasureCode(data_shards, bytes + margin_bytes)
  const hash = createHash("sha256")
  const shards = Array.from({ length: data_shards + 2 }, (_, at) => at)
  const addAll = () => shards.forEach((at) => void hash.update(code.shard(at)))
  for (const at of shards) code.shard(at).set(noise(at + 1, bytes + margin_bytes))
  code.encode(bytes)
  addAll()
  for (const one of shards) {
    for (const other of shards.slice(one)) {
      for (const lost of [one, other]) code.shard(lost).fill(one + 16 * other, 0, bytes)
      code.rebuildData([other, one], bytes)
      addAll()
      code.rebuild([one, other], bytes)
      addAll()
    }
  }
  return hash.digest("hex").slice(0, 16)
}

const recorded: Readonly<Record<number, ReadonlyArray<string>>> = {
  4: [
    "9ef0b1d5f282cf6d",
    "901a8b618d14fb75",
    "64a0b928bd13e89d",
    "d5e91a9f404c59cb",
    "661e0d5cec291aca",
    "ae68f550df24333b",
    "554898e2eee7308a",
    "100064e30d386ed9",
    "7b33255af34bab6e",
    "ef5aab145041066f",
  ],
  8: [
    "027fab29c9a7b165",
    "cdc170c8d1830fb0",
    "556727a277c819e9",
    "db64e1c005336cdd",
    "aac270d44f195779",
    "bd3ef72e80d2d5cc",
    "d68ca9a13517103a",
    "f451a4da8813e59e",
    "f7a4adc8e38f4ecb",
    "97ecb0deadd9f7e5",
  ],
}

describe.each(Object.entries(recorded))(
  "the erasure code over %s data shards",
  (shards, hashes) => {
    it("produces the recorded bytes for every length and loss", () => {
      expect(lengths.map((bytes) => hashOf(Number(shards), bytes))).toEqual(hashes)
    })
  },
)
