/** The volume's format: what is written is read back, and anything else is rejected. */
import assert from "node:assert/strict"
import fc from "fast-check"
import { describe, it } from "vitest"
import type { BlobId } from "#schemas/blob-storage/blob.ts"
import {
  decodeBatchHeader,
  decodeSuperblock,
  encodeBatchHeader,
  encodeSuperblock,
  page_bytes,
  seedOf,
} from "../log/format.ts"
import {
  checksumOf,
  clusterAtOf,
  decodeHead,
  decodeTail,
  encodeHead,
  encodeTail,
  extentsOf,
  freedOf,
  hashOf,
  headBytesMax,
  labelsOf,
  type NewRecord,
  originOf,
  putAtOf,
  shardOf,
  sinceOf,
  tail_bytes,
} from "../log/record.ts"
import { factOf, metaOf, movedOf } from "../log/record-facts.ts"

const u32 = fc.nat(2 ** 32 - 1)
const u53 = fc.maxSafeNat()
const volume_id = fc.uint8Array({ minLength: 16, maxLength: 16 })
const kind = fc.constantFrom("log" as const, "ext" as const)
const format = fc.constantFrom(1, 2)
const superblock = fc.record({ volume_id, kind, number: u32, generation: u53, bytes: u53, format })

const header = fc.record({
  generation: u53,
  sequence: u53,
  bytes: u32,
  previous_crc: u32,
  records: u32,
  first_cursor: u53,
  acknowledged: u53,
  heads_crc: u32,
  file: u32,
  position: u53,
})

const hex = (bytes: number) =>
  fc
    .uint8Array({ minLength: bytes, maxLength: bytes })
    .map((array) => Buffer.from(array).toString("hex"))
const plain = { noNullPrototype: true } as const
const extent = fc.record({ file: u32, position: u53, bytes: u53, table_crc: u32 }, plain)
const text = fc.string({ unit: "grapheme", maxLength: 40 })
const label_text = fc.string({ unit: "binary", maxLength: 20 })

const time = fc.bigInt({ min: 0n, max: 2n ** 63n })
const shard = fc.record({ index: fc.nat(9), data_shards: fc.integer({ min: 1, max: 8 }) }, plain)

const record: fc.Arbitrary<NewRecord> = fc
  .record({
    kind: fc.constantFrom("blob", "tombstone", "quarantined", "lost", "released"),
    is_moved: fc.boolean(),
    is_large: fc.boolean(),
    policy: fc.constantFrom("REPLICATION_POLICY_NONE", "REPLICATION_POLICY_EC82"),
    // Sixteen bytes in hex are an id.
    id: hex(16).map((id) => id as BlobId),
    hash: fc.option(hex(32), { nil: "" }),
    size: u53,
    shard: fc.option(shard, { nil: undefined }),
    at: time,
    since: time,
    cluster_at: time,
    put_at: time,
    cursor: u53,
    origin: fc.record({ actor: text, request_id: text, correlation_id: text }, plain),
    labels: fc.dictionary(label_text, label_text, { maxKeys: 5, noNullPrototype: true }),
    crcs: fc.array(u32, { maxLength: 4 }),
    extents: fc.array(extent, { maxLength: 5 }),
    freed: fc.array(extent, { maxLength: 5 }),
  } as const)
  .map((fields): NewRecord => ({ ...fields, payload_bytes: 65_536 * fields.crcs.length }))

/** Written by a version of the volume without shards: a head and a tail under seed 9. */
const old_head =
  "UkVDMQEGAgDAAAAAAAAAAGQ3s6w4RlEz/7Y7dSc6jbVkN7OsOEZRM/+2O3UnOo21SMVYRl152wP9NZxs1b2d" +
  "heCTBAAAAAAAAYCrXzy1eRgqAAAAAAAAAAgAAwADAAAADgAAAA0AAAABAAAAAQAAAHNvbWVib2R5ci0xYy0xey" +
  "JraW5kIjoiw6kifQMAAABNAAAAACAAAAAAAADgkwQAAAAAAAIAAABOAAAAABAAAAAAAAAFAAAAAAAAAAAo4ULD"
const old_tail =
  "VEFJTAIAAADgkwQAAAAAAGQ3s6w4RlEz/7Y7dSc6jbVIxVhGXXnbA/01nGzVvZ2FAAAAAAAAAAAAAAAAyt1CIg=="

/** The bytes with one bit flipped. */
const flipped = (bytes: Buffer, bit: number) => {
  const other = Buffer.from(bytes)
  other[bit >>> 3] = (other[bit >>> 3] ?? 0) ^ (1 << (bit & 7))
  return other
}

const encoded = (given: NewRecord, seed: number, position = 0) => {
  const into = Buffer.alloc(position + headBytesMax(given), 0xff)
  const bytes = encodeHead(into, position, given, seed)
  return into.subarray(position, position + bytes)
}

describe("a superblock", () => {
  it("is read back from either copy", () => {
    const holds = (given: typeof superblock extends fc.Arbitrary<infer A> ? A : never) => {
      const pages = encodeSuperblock(given)
      const expected = { ...given, volume_id: Buffer.from(given.volume_id) }
      assert.deepEqual(decodeSuperblock(pages), expected)
      for (const copy of [0, page_bytes]) {
        const damaged = Buffer.from(pages)
        damaged.fill(0x55, copy, copy + 64)
        assert.deepEqual(decodeSuperblock(damaged), expected)
      }
    }
    fc.assert(fc.property(superblock, holds))
  })

  it("of a newer release stops startup", () => {
    const pages = encodeSuperblock({
      volume_id: new Uint8Array(16),
      kind: "log" as const,
      number: 1,
      generation: 1,
      bytes: 8192,
      format: 1,
    })
    assert.throws(() => decodeSuperblock(futureOf(pages)), /a newer release .* format 3/)
  })

  it("has a format once both its copies do", () => {
    const place = { volume_id: new Uint8Array(16), kind: "log" as const, number: 1, bytes: 8192 }
    const of = (generation: number, format: number) =>
      encodeSuperblock({ ...place, generation, format })
    const of_both = (first: Buffer, second: Buffer) =>
      decodeSuperblock(Buffer.concat([first.subarray(0, page_bytes), second.subarray(page_bytes)]))
    for (const [first, second, format] of [
      [of(1, 2), of(1, 1), 1],
      [of(1, 2), of(1, 2), 2],
      [of(2, 1), of(1, 2), 1],
      [of(1, 2), Buffer.alloc(2 * page_bytes), 2],
    ] as const) {
      assert.equal(of_both(first, second)?.format, format)
    }
  })

  it("with a flipped bit in both copies is invalid", () => {
    const pages = encodeSuperblock({
      volume_id: new Uint8Array(16).fill(7),
      kind: "ext" as const,
      number: 3,
      generation: 9,
      bytes: 65_536,
      format: 1,
    })
    for (let bit = 0; bit < 64 * 8; bit++) {
      assert.equal(decodeSuperblock(flipped(flipped(pages, bit), bit + 8 * page_bytes)), undefined)
    }
  })
})

/** The first copy, as a later release may write it. */
const futureOf = (pages: Buffer) => {
  const future = Buffer.from(pages)
  future.writeUInt32LE(3, 8)
  // The CRC of the first 60 bytes, computed with the standard table.
  let crc = 0xffff_ffff
  for (const byte of future.subarray(0, 60)) {
    crc ^= byte
    for (let bit = 0; bit < 8; bit++) crc = (crc >>> 1) ^ (crc & 1 ? 0x82f6_3b78 : 0)
  }
  future.writeUInt32LE(~crc >>> 0, 60)
  return future
}

describe("a batch's header", () => {
  it("is read back with its file's seed only", () => {
    const holds = (
      given: typeof header extends fc.Arbitrary<infer A> ? A : never,
      seed: number,
    ) => {
      const bytes = Buffer.alloc(200)
      const crc = encodeBatchHeader(bytes, 8, given, seed)
      assert.deepEqual(decodeBatchHeader(bytes, 8, seed), { ...given, crc })
      assert.equal(decodeBatchHeader(bytes, 8, seed ^ 1), undefined)
      assert.equal(decodeBatchHeader(bytes, 0, seed), undefined)
      assert.equal(decodeBatchHeader(bytes.subarray(0, 100), 8, seed), undefined)
    }
    fc.assert(fc.property(header, u32, holds))
  })

  it("with a flipped bit is invalid", () => {
    fc.assert(
      fc.property(header, fc.nat(96 * 8 - 1), (given, bit) => {
        const bytes = Buffer.alloc(96)
        encodeBatchHeader(bytes, 0, given, 5)
        assert.equal(decodeBatchHeader(flipped(bytes, bit), 0, 5), undefined)
      }),
    )
  })

  it("has a different seed for another generation, file, kind or volume", () => {
    const one = { volume_id: new Uint8Array(16), kind: "log" as const, number: 1, generation: 1 }
    const seeds = [
      one,
      { ...one, generation: 2 },
      { ...one, number: 2 },
      { ...one, kind: "ext" as const },
      { ...one, volume_id: new Uint8Array(16).fill(1) },
    ].map(seedOf)
    assert.equal(new Set(seeds).size, 5)
  })
})

describe("a blob's tail", () => {
  it("is read back, and is invalid with a flipped bit", () => {
    fc.assert(
      fc.property(record, hex(32), u32, fc.nat(8 * tail_bytes - 1), (given, hash, seed, bit) => {
        const bytes = Buffer.alloc(8 + tail_bytes, 0xff)
        encodeTail(bytes, 8, { ...given, hash }, seed)
        const tail = bytes.subarray(8)
        const { size, policy, shard } = given
        assert.deepEqual(decodeTail(tail, seed), { hash, size, policy, shard })
        assert.equal(decodeTail(tail, seed ^ 1), undefined)
        assert.equal(decodeTail(flipped(tail, bit), seed), undefined)
      }),
    )
  })
})

describe("a record's head", () => {
  it("is read back", () => {
    const holds = (given: NewRecord, seed: number, steps: number) => {
      const bytes = encoded(given, seed, 8 * steps)
      assert.equal(bytes.length % 8, 0)
      const head = decodeHead(bytes, 0, seed) ?? assert.fail("the head does not hold")
      const { kind, is_moved, is_large, policy, id, size, at, cursor, payload_bytes } = head
      const fields = { kind, is_moved, is_large, policy, id, size, at, cursor, payload_bytes }
      const { hash, origin, labels, extents, freed, crcs, ...others } = given
      const { shard, since, cluster_at, put_at, ...rest } = others
      assert.deepEqual(fields, rest)
      assert.deepEqual(shardOf(head), shard)
      assert.equal(sinceOf(head), since === 0n ? at : since)
      assert.equal(clusterAtOf(head), cluster_at)
      assert.equal(putAtOf(head), put_at === 0n ? sinceOf(head) : put_at)
      assert.equal(payload_bytes, 65_536 * crcs.length)
      assert.equal(hashOf(head), hash)
      assert.equal(checksumOf(head), Buffer.from(hash, "hex").toString("base64"))
      assert.deepEqual(originOf(head), origin)
      assert.deepEqual({ ...labelsOf(head) }, { ...labels })
      assert.deepEqual(extentsOf(head), extents)
      assert.deepEqual(freedOf(head), freed)
      const tail = given.kind === "blob" ? tail_bytes : 0
      assert.equal(head.record_bytes, bytes.length + given.payload_bytes + tail)
    }
    fc.assert(fc.property(record, u32, fc.nat(4), holds))
  })

  it("of a blob put here is encoded as before there were copies", () => {
    const checksum = "6437b3ac38465133ffb63b75273a8db548c558465d79db03fd359c6cd5bd9d85"
    const given: NewRecord = {
      kind: "blob",
      is_moved: false,
      is_large: true,
      policy: "REPLICATION_POLICY_REPLICA2",
      // 32 hexadecimal digits.
      id: checksum.slice(0, 32) as BlobId,
      hash: checksum,
      size: 300_000,
      shard: undefined,
      at: 1_763_640_000_000_000_001n,
      since: 0n,
      cluster_at: 0n,
      put_at: 0n,
      cursor: 42,
      origin: { actor: "somebody", request_id: "r-1", correlation_id: "c-1" },
      labels: { kind: "é" },
      payload_bytes: 0,
      crcs: [],
      extents: [{ file: 3, position: 8192, bytes: 300_000, table_crc: 77 }],
      freed: [{ file: 2, position: 4096, bytes: 5, table_crc: 78 }],
    }
    assert.equal(encoded(given, 9).toString("base64"), old_head)
    const tail = Buffer.alloc(tail_bytes)
    encodeTail(tail, 0, given, 9)
    assert.equal(tail.toString("base64"), old_tail)
    const head = decodeHead(Buffer.from(old_head, "base64"), 0, 9) ?? assert.fail("no head")
    assert.deepEqual(movedOf(head), { ...given, is_moved: true, freed: [] })
    assert.equal(metaOf(head).created_at, given.at)
    assert.equal(decodeTail(Buffer.from(old_tail, "base64"), 9)?.shard, undefined)
  })

  it("is invalid with a flipped bit, truncated, or under another seed", () => {
    fc.assert(
      fc.property(record, fc.nat(), (given, at) => {
        const bytes = encoded(given, 77)
        assert.equal(decodeHead(flipped(bytes, at % (8 * bytes.length)), 0, 77), undefined)
        assert.equal(decodeHead(bytes.subarray(0, at % bytes.length), 0, 77), undefined)
        assert.equal(decodeHead(bytes, 0, 78), undefined)
      }),
    )
  })

  it("that was moved is the same, except that it is no fact and frees nothing", () => {
    fc.assert(
      fc.property(record, (given) => {
        const head = decodeHead(encoded(given, 1), 0, 1) ?? assert.fail("no head")
        const again = decodeHead(encoded(movedOf(head), 9), 0, 9) ?? assert.fail("not again")
        const since = given.since === given.at ? 0n : given.since
        const put_at = given.put_at === sinceOf(head) ? 0n : given.put_at
        assert.deepEqual(movedOf(again), { ...given, since, put_at, is_moved: true, freed: [] })
        assert.deepEqual(metaOf(again), metaOf(head))
        assert.equal(factOf(again), undefined)
      }),
    )
  })

  it("is a fact if it has a cursor and was not moved", () => {
    fc.assert(
      fc.property(record, (given) => {
        const head = decodeHead(encoded(given, 1), 0, 1) ?? assert.fail("no head")
        const fact = factOf(head)
        assert.equal(fact !== undefined, given.cursor > 0 && !given.is_moved)
        if (!fact) return
        assert.equal(fact.cursor, given.cursor)
        assert.equal(fact.kind === "stored", given.kind === "blob")
        assert.equal(fact.labels !== undefined, given.kind === "blob")
      }),
    )
  })
})
