import assert from "node:assert/strict"
import { describe, it } from "@effect/vitest"
import { noise } from "../../../test/contract/blob-storage/engine-bytes.ts"
import { erasureCode } from "../code.ts"

/** Multiplication in GF(256) by definition, bit by bit. */
const times = (one: number, other: number): number => {
  if (other === 0) return 0
  const doubled = one & 0x80 ? ((one << 1) ^ 0x11d) & 0xff : one << 1
  return (other & 1 ? one : 0) ^ times(doubled, other >> 1)
}
const powerOf2 = (exponent: number): number =>
  exponent === 0 ? 1 : times(2, powerOf2(exponent - 1))

const filled = (data_shards: number, bytes: number, room: number) => {
  const code = erasureCode(data_shards, room)
  for (let at = 0; at < data_shards; at++) code.shard(at).set(noise(at + 1, bytes))
  return code
}

const shards = (code: ReturnType<typeof filled>, bytes: number) =>
  Array.from({ length: code.data_shards + 2 }, (_, at) => code.shard(at).slice(0, bytes))

for (const [policy, data_shards] of [
  ["EC42", 4],
  ["EC82", 8],
] as const) {
  describe(`the erasure code of ${policy}`, () => {
    it("computes P as the XOR and Q as the sum of 2^i times shard i over GF(256)", () => {
      const bytes = 192
      const code = filled(data_shards, bytes, 256)
      code.encode(bytes)
      for (let at = 0; at < bytes; at++) {
        let [p, q] = [0, 0]
        for (let shard = 0; shard < data_shards; shard++) {
          const byte = code.shard(shard)[at] ?? 0
          p ^= byte
          q ^= times(byte, powerOf2(shard))
        }
        assert.equal(code.shard(data_shards)[at], p)
        assert.equal(code.shard(data_shards + 1)[at], q)
      }
    })

    it("writes nothing beyond the requested bytes", () => {
      const code = filled(data_shards, 64, 192)
      for (let at = 0; at < data_shards + 2; at++) code.shard(at).fill(0xee, 64)
      code.encode(64)
      code.rebuild([0, 1], 64)
      code.rebuild([1], 64)
      for (const shard of shards(code, 192)) {
        assert.ok(shard.subarray(64).every((byte) => byte === 0xee))
      }
    })

    for (const bytes of [64, 1088, 4096, 65_536]) {
      it(`reconstructs any one or two lost shards of ${bytes} bytes`, () => {
        const code = filled(data_shards, bytes, bytes)
        code.encode(bytes)
        const whole = shards(code, bytes)
        for (let one = 0; one < data_shards + 2; one++) {
          for (let other = one; other < data_shards + 2; other++) {
            for (const lost of [one, other]) code.shard(lost).fill(0x5a)
            code.rebuild([other, one], bytes)
            assert.deepEqual(shards(code, bytes), whole, `lost ${one} and ${other}`)
          }
        }
      })
    }

    it("rejects three lost shards, and lengths that are too long or no multiple of 64", () => {
      const code = filled(data_shards, 128, 128)
      assert.throws(() => code.rebuild([0, 1, 2], 64), /more than two/)
      for (const bytes of [0, -64, 65, 192]) {
        assert.throws(() => code.encode(bytes), /multiple of 64/)
        assert.throws(() => code.rebuild([0], bytes), /multiple of 64/)
      }
      assert.throws(() => erasureCode(data_shards, 100), /multiple of 64/)
    })
  })
}
