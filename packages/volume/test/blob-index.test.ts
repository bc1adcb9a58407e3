import assert from "node:assert/strict"
import { describe, it } from "@effect/vitest"
import fc from "fast-check"
import type { BlobId } from "#schemas/blob-storage/blob.ts"
import { makeIndex, type Place } from "../blob-index/blob-index.ts"

const kinds = ["blob", "tombstone", "gone", "shard"] as const

const place: fc.Arbitrary<Place> = fc.record(
  {
    file: fc.oneof(fc.integer({ min: 1, max: 4 }), fc.integer({ min: 1, max: 2 ** 28 - 1 })),
    position: fc.nat(2 ** 30 - 1).map((number) => 8 * number * 4),
    bytes: fc.oneof(fc.nat(5000), fc.constant(2 ** 32 - 1)),
    kind: fc.constantFrom(...kinds),
    is_large: fc.boolean(),
  },
  { noNullPrototype: true },
)

const digits = Array.from("0123456789abcdef")
/** Ids that collide often: few first words, words of zeros, similar words. */
const id = fc
  .tuple(
    fc.constantFrom("00000000", "ffffffff", "80000000", "7fffffff", "a1b2c3d4"),
    fc.array(fc.constantFrom("00000000", "00000001", "deadbeee", "deadbeef", "ffffffff"), {
      minLength: 3,
      maxLength: 3,
    }),
  )
  .map(([first, rest]) => `${first}${rest.join("")}` as BlobId)

const noise = (seed: number) => {
  let state = seed || 1
  const word = () => {
    state ^= state << 13
    state ^= state >>> 17
    state ^= state << 5
    return state >>> 0
  }
  return { word, id: () => Array.from({ length: 4 }, () => hex(word())).join("") as BlobId }
}
const hex = (word: number) => word.toString(16).padStart(8, "0")

const filled = (count: number, seed: number) => {
  const random = noise(seed)
  const model = new Map<BlobId, Place>()
  const index = makeIndex([], seed)
  for (let number = 0; number < count; number++) {
    const one = random.id()
    const where: Place = {
      file: 1 + (number % 7),
      position: 8 * number,
      bytes: number,
      kind: kinds[number % 9] ?? "blob",
      is_large: number % 5 === 0,
    }
    index.set(one, where)
    model.set(one, where)
  }
  return { index, model }
}

const listOf = (model: ReadonlyMap<BlobId, Place>, after: string, prefix: string, limit: number) =>
  Array.from(model)
    .filter(([, { kind }]) => kind === "blob" || kind === "shard")
    .map(([id]) => id)
    .filter((id) => id > after && id.startsWith(prefix))
    .sort()
    .slice(0, limit)

const betweenOf = (
  model: ReadonlyMap<BlobId, Place>,
  after: string,
  until: string,
  limit: number,
) =>
  Array.from(model)
    .filter(([, { kind }]) => kind !== "gone")
    .map(([id]) => id)
    .filter((id) => id > after && (until === "" || id < until))
    .sort()
    .slice(0, limit)

const countOf = (model: ReadonlyMap<BlobId, Place>) => {
  const places = Array.from(model.values())
  const [blobs = 0, tombstones = 0, gone = 0, shards = 0] = kinds.map(
    (kind) => places.filter((place) => place.kind === kind).length,
  )
  return { blobs, tombstones, gone, shards }
}

const sorted = (entries: Iterable<readonly [BlobId, Place]>) =>
  Array.from(entries).sort(([one], [other]) => (one < other ? -1 : 1))

describe("a volume's index", () => {
  it("matches a map after any history", () => {
    const step = fc.oneof(
      fc.record({ id, place }),
      fc.record({ id, place: fc.constant(undefined) }),
    )
    fc.assert(
      fc.property(fc.array(step, { maxLength: 300 }), fc.integer(), (history, seed) => {
        const index = makeIndex([], seed)
        const model = new Map<BlobId, Place>()
        for (const { id, place } of history) {
          assert.deepEqual(index.find(id), model.get(id))
          if (place) index.set(id, place)
          else index.remove(id)
          if (place) model.set(id, place)
          else model.delete(id)
          assert.deepEqual(index.find(id), place)
        }
        assert.deepEqual(index.count(), countOf(model))
        assert.deepEqual(sorted(index.entries()), sorted(model))
        const again = makeIndex(Array.from(index.image()))
        assert.deepEqual(sorted(again.entries()), sorted(model))
      }),
      { numRuns: 300 },
    )
  })

  it("finds and removes entries through growth and splits", () => {
    const { index, model } = filled(30_000, 7)
    const random = noise(99)
    for (const [id, place] of model) {
      assert.deepEqual(index.find(id), place)
      if (random.word() % 3 > 0) continue
      index.remove(id)
      model.delete(id)
    }
    assert.deepEqual(index.count(), countOf(model))
    for (const [id, place] of model) assert.deepEqual(index.find(id), place)
    assert.equal(index.find(random.id()), undefined)
    assert.deepEqual(sorted(index.entries()), sorted(model))
  })

  it("lists blobs in byte order by prefix, cursor and limit, and all between two ids", () => {
    const { index, model } = filled(12_000, 11)
    const all = listOf(model, "", "", 20_000)
    const prefix = fc.array(fc.constantFrom(...digits), { maxLength: 4 }).map((all) => all.join(""))
    const after = fc.oneof(
      fc.constantFrom("", "f".repeat(32), "0".repeat(32)),
      fc.nat(all.length - 1).map((number) => all[number] ?? ""),
      fc.nat(2 ** 32 - 1).map((word) => hex(word).padEnd(32, "8")),
    )
    const property = fc.property(after, prefix, fc.integer({ min: 1, max: 3000 }), (...page) => {
      assert.deepEqual(index.list(...page), listOf(model, ...page))
    })
    fc.assert(property, { numRuns: 60 })
    const two = fc.property(after, after, fc.integer({ min: 1, max: 3000 }), (...page) => {
      assert.deepEqual(index.between(...page), betweenOf(model, ...page))
    })
    fc.assert(two, { numRuns: 60 })
    const [one = ""] = all
    assert.deepEqual(index.list("", one, 5), [one])
    assert.deepEqual(index.list(one, one, 5), [])
  })

  it("lists ids that differ only in their last word", () => {
    const index = makeIndex()
    const ids = Array.from(
      { length: 5000 },
      (_, number) => `${"a".repeat(24)}${hex((number * 0x9e37_79b1) >>> 0)}` as BlobId,
    )
    for (const id of ids) {
      index.set(id, { file: 1, position: 0, bytes: 0, kind: "blob", is_large: false })
    }
    assert.deepEqual(index.list("", "a".repeat(20), 10_000), ids.toSorted())
    assert.deepEqual(index.list(`${"a".repeat(24)}80000000`, "", 3), [
      ...ids
        .toSorted()
        .filter((id) => id > `${"a".repeat(24)}80000000`)
        .slice(0, 3),
    ])
  })

  it("is restored from its image, however that is cut", () => {
    const { index, model } = filled(20_000, 13)
    const image = Buffer.concat(Array.from(index.image()))
    const pieces = []
    for (let at = 0; at < image.length; at += 10_001) pieces.push(image.subarray(at, at + 10_001))
    const again = makeIndex(pieces, 4)
    assert.deepEqual(again.count(), index.count())
    assert.deepEqual(sorted(again.entries()), sorted(model))
    assert.throws(() => makeIndex([image.subarray(1)]), RangeError)
    assert.throws(() => makeIndex([new Uint8Array(28)]), RangeError)
  })

  it("iterates over images and slices while it grows and splits", () => {
    const { index, model } = filled(20_000, 17)
    const known = new Map(model)
    const random = noise(5)
    const place: Place = { file: 3, position: 8, bytes: 1, kind: "blob", is_large: false }
    const addSome = (count: number) => {
      for (let number = 0; number < count; number++) index.set(random.id(), place)
    }
    const pieces = []
    for (const piece of index.image()) {
      pieces.push(piece.slice())
      addSome(20_000)
    }
    assert(pieces.length > 1)
    const again = makeIndex(pieces)
    for (const [id, place] of known) assert.deepEqual(again.find(id), place)
    const seen: Array<BlobId> = []
    for (const slice of index.slices(5)) {
      assert(slice.length <= 2048)
      for (const [id, { file }] of slice) {
        assert.equal(file, 5)
        seen.push(id)
      }
      addSome(300)
    }
    const expected = sorted(known).filter(([, { file }]) => file === 5)
    assert.deepEqual(
      seen.sort(),
      expected.map(([id]) => id),
    )
    assert.deepEqual(sorted(index.inFile(5)), expected)
  })

  it("takes an image of one moment, unaffected by changes before a piece is read", () => {
    const { index, model } = filled(20_000, 18)
    const before = index.count()
    const image = index.image()
    const moved: Place = { file: 9, position: 16, bytes: 2, kind: "tombstone", is_large: true }
    const pieces = []
    const ids = [...model.keys()]
    for (const id of ids.splice(0, 5000)) index.set(id, moved)
    for (const piece of image) {
      pieces.push(piece)
      for (const id of ids.splice(0, 3000)) index.remove(id)
    }
    const again = makeIndex(pieces)
    assert.deepEqual(again.count(), before)
    for (const [id, place] of model) assert.deepEqual(again.find(id), place)
    assert.notDeepEqual(index.count(), before)
  })

  it("ends an image in progress when another one starts", () => {
    const { index } = filled(20_000, 19)
    const first = index.image()
    assert(Array.from(index.image()).length > 1)
    assert.throws(() => Array.from(first), /another image/)
  })

  it("rejects a place that it cannot represent", () => {
    const index = makeIndex()
    const good: Place = { file: 1, position: 8, bytes: 1, kind: "blob", is_large: false }
    const id = "0".repeat(32) as BlobId
    const wrong: ReadonlyArray<Partial<Place>> = [
      { file: 0 },
      { file: 2 ** 28 },
      { file: 1.5 },
      { position: 4 },
      { position: -8 },
      { position: 2 ** 35 },
      { bytes: -1 },
      { bytes: 2 ** 32 },
    ]
    for (const part of wrong) assert.throws(() => index.set(id, { ...good, ...part }), RangeError)
    assert.equal(index.find(id), undefined)
    assert.deepEqual(index.count(), { blobs: 0, tombstones: 0, gone: 0, shards: 0 })
  })

  it("takes at most 70 bytes per blob at every count from 10,000 on", () => {
    const random = noise(3)
    const index = makeIndex()
    const place: Place = { file: 1, position: 8, bytes: 1, kind: "blob", is_large: false }
    let most = 0
    for (let count = 1; count <= 200_000; count++) {
      index.set(random.id(), place)
      if (count >= 10_000 && count % 100 === 0) most = Math.max(most, index.bytes() / count)
    }
    assert(most <= 70, `${most} bytes a blob`)
    // It reports the size of its arrays: the process uses at least that.
    assert(index.bytes() > 200_000 * 28)
    assert(index.bytes() <= process.memoryUsage().arrayBuffers + 200_000 * 2)
  })
})
