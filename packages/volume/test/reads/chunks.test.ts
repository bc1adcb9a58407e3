/** Chunk checksums do not depend on how the bytes are cut. */
import assert from "node:assert/strict"
import fc from "fast-check"
import { describe, it } from "vitest"
import { noise } from "../../../../test/contract/blob-storage/engine-bytes.ts"
import {
  chunk_bytes,
  chunkCount,
  firstMismatch,
  makeChunkTable,
  tableBytes,
} from "../../reads/chunks.ts"

/** CRC32C bit by bit, as in RFC 3720, continued from `crc`. */
const naiveCrc = (bytes: Uint8Array, crc: number) => {
  let state = ~crc
  for (const byte of bytes) {
    state ^= byte
    for (let bit = 0; bit < 8; bit++) state = (state >>> 1) ^ (state & 1 ? 0x82f63b78 : 0)
  }
  return ~state >>> 0
}

const tableOf = (bytes: Uint8Array) => {
  const chunks = makeChunkTable()
  chunks.update(bytes)
  return chunks.take(bytes.length)
}
const viewOf = (table: Buffer) => new DataView(table.buffer, table.byteOffset, table.length)

describe("the table of a blob's chunks", () => {
  it("holds the CRC32C of each 64 KiB, seeded with the chunk's number", () => {
    const bytes = noise(1, 2 * chunk_bytes + 100)
    const table = tableOf(bytes)
    assert.equal(table.length, tableBytes(bytes.length))
    const expected = [0, 1, 2].map((chunk) =>
      naiveCrc(bytes.subarray(chunk * chunk_bytes, (chunk + 1) * chunk_bytes), chunk),
    )
    assert.deepEqual(
      [0, 4, 8].map((at) => table.readUInt32LE(at)),
      expected,
    )
    assert.equal(naiveCrc(new TextEncoder().encode("123456789"), 0), 0xe3069283)
  })

  it("is the same however the bytes are cut, also if it is taken in pieces", () => {
    const bytes = noise(2, 9 * chunk_bytes + 5)
    const whole = tableOf(bytes)
    const cuts = fc.array(fc.integer({ min: 1, max: 3 * chunk_bytes }), { maxLength: 30 })
    const property = fc.property(cuts, fc.integer({ min: 1, max: 8 }), (sizes, take_after) => {
      const chunks = makeChunkTable()
      const taken: Array<Buffer> = []
      const border = take_after * chunk_bytes
      let at = 0
      for (const size of [...sizes, bytes.length]) {
        const end = Math.min(at + size, at < border ? border : bytes.length)
        chunks.update(bytes.subarray(at, end))
        at = end
        if (at === border && taken.length === 0) taken.push(chunks.take(border))
      }
      chunks.update(bytes.subarray(at))
      assert(
        Buffer.concat([...taken, chunks.take(bytes.length - (taken.length && border))]).equals(
          whole,
        ),
      )
    })
    fc.assert(property, { numRuns: 60 })
  })

  it("does not match after any bit flip, nor with a misplaced chunk", () => {
    const bytes = noise(3, 3 * chunk_bytes + 77)
    const table = viewOf(tableOf(bytes))
    assert.equal(firstMismatch(bytes, 0, table), undefined)
    assert.equal(firstMismatch(bytes.subarray(chunk_bytes), 1, table, 1), undefined)
    const property = fc.property(fc.nat(bytes.length - 1), fc.nat(7), (at, bit) => {
      const changed = bytes.slice()
      changed[at] = (changed[at] ?? 0) ^ (1 << bit)
      assert.equal(firstMismatch(changed, 0, table), Math.floor(at / chunk_bytes))
    })
    fc.assert(property, { numRuns: 100 })
    const same = new Uint8Array(2 * chunk_bytes)
    const zeros = viewOf(tableOf(same))
    assert.notEqual(zeros.getUint32(0, true), zeros.getUint32(4, true))
    assert.equal(firstMismatch(same.subarray(chunk_bytes), 0, zeros, 1), 0)
  })

  it("grows with the blob", () => {
    const chunks = makeChunkTable()
    const part = new Uint8Array(chunk_bytes)
    for (let n = 0; n < 1000; n++) chunks.update(part)
    assert.equal(chunks.take(600 * chunk_bytes).length, 2400)
    assert.equal(chunks.take(400 * chunk_bytes).length, 1600)
    assert.throws(() => chunks.take(1))
    assert.deepEqual([0, 1, chunk_bytes, chunk_bytes + 1].map(chunkCount), [0, 1, 1, 2])
  })
})
