/**
 * Extent files: no space is allocated twice after any sequence of reservations, frees and reads.
 */
import assert from "node:assert/strict"
import fc from "fast-check"
import { describe, it } from "vitest"
import type { BlobId } from "#schemas/blob-storage/blob.ts"
import {
  type Allocation,
  dataBytes,
  type ExtentFiles,
  makeExtents,
  spanBytes,
} from "../../extents/files.ts"
import { data_start } from "../../log/format.ts"
import type { Extent } from "../../log/record.ts"
import type { Segments } from "../../parts.ts"
import { fakeSegments, segment_bytes } from "../fake-segments.ts"

const kib = 1024
// 32 hex characters each.
const ann = "0123456789abcdef0123456789abcdef" as BlobId
const bob = "fedcba9876543210fedcba9876543210" as BlobId

const noFail = (detail: string) => assert.fail(detail)

const make = (files_max?: number) => {
  const { segments, files } = fakeSegments(files_max)
  const extents = makeExtents({ segments, segment_bytes, fail: noFail })
  const restored = (images: Iterable<Uint8Array>) =>
    makeExtents({ segments, segment_bytes, fail: noFail, images })
  return { extents, files, restored }
}

/** The extent that fills an allocation. */
const extentOf = ({ segment, start, end }: Allocation): Extent => ({
  ...{ file: segment.number, position: start, bytes: end - start - 4096, table_crc: 1 },
})

const keep = async (extents: ExtentFiles, id: BlobId, bytes = 256 * kib) => {
  const grant = await extents.reserve(bytes)
  const extent = extentOf(grant)
  extents.keep(id, [extent])
  return { grant, extent }
}

const live = (extents: ExtentFiles) => extents.bytes().live

/** Size of the images, counted from scratch. */
const sizeOf = (images: Iterable<Uint8Array>) => {
  const all = Array.from(images, ({ length }) => length)
  return { bytes: all.reduce((sum, bytes) => sum + bytes, 0), images: all.length }
}

describe("extent files", () => {
  it("allocate whole pages, in one file while it has space, then in the next", async () => {
    const { extents, files } = make()
    const first = await extents.reserve(300 * kib + 1)
    assert.deepEqual([first.start, first.end], [data_start, data_start + 304 * kib])
    const second = await extents.reserve(304 * kib)
    assert.deepEqual([second.segment.number, second.start], [1, first.end])
    const third = await extents.reserve(500 * kib)
    assert.equal(third.segment.number, 2)
    assert(files.size <= 3)
  })

  it("know after a restart what was owned, and only that", async () => {
    const { extents, restored } = make()
    const { extent } = await keep(extents, ann)
    await extents.reserve(256 * kib)
    // An image may be part of a larger buffer, as when a checkpoint is read.
    const images = Array.from(extents.image(), (image) => {
      const larger = Buffer.alloc(image.length + 3, 7)
      larger.set(image, 3)
      return larger.subarray(3)
    })
    const again = restored(images)
    assert.equal(live(again), 256 * kib)
    assert.deepEqual(again.owners(1), [{ start: data_start, end: data_start + 256 * kib, id: ann }])
    const next = await again.reserve(256 * kib)
    assert.equal(next.start, data_start + 256 * kib)
    again.free(ann, [extent])
    assert.equal(live(again), 0)
    assert.equal((await again.reserve(256 * kib)).start, data_start)
  })

  it("let a later record take a span over, and a blob free only what it owns", async () => {
    const { extents } = make()
    const { extent } = await keep(extents, ann)
    extents.keep(bob, [extent])
    assert.equal(live(extents), 256 * kib)
    assert.deepEqual(extents.imageSize(), sizeOf(extents.image()))
    extents.free(ann, [extent])
    assert.deepEqual(
      extents.owners(1).map(({ id }) => id),
      [bob],
    )
    extents.free(bob, [extent])
    extents.free(bob, [extent])
    assert.deepEqual([live(extents), extents.isEmpty(1)], [0, true])
  })

  it("keep a record's extents in a missing file, and free them", () => {
    const { extents } = make()
    const extent = { file: 9, position: data_start, bytes: 100_000, table_crc: 1 }
    extents.keep(ann, [extent])
    assert.equal(extents.owners(9).length, 1)
    extents.free(ann, [extent])
    assert.equal(extents.owners(9).length, 0)
  })

  it("release only what is still reserved by the upload", async () => {
    const { extents } = make()
    const { grant, extent } = await keep(extents, ann)
    extents.release(grant)
    assert.equal(live(extents), 256 * kib)
    extents.free(ann, [extent])
    const other = await extents.reserve(256 * kib)
    assert.equal(other.start, grant.start)
    extents.release(grant)
    assert.notEqual((await extents.reserve(256 * kib)).start, other.start)
  })

  it("allocate nothing that is freed but still being read", async () => {
    const { extents } = make()
    const { grant, extent } = await keep(extents, ann)
    const [one, two] = [extents.pin([extent]), extents.pin([extent])]
    extents.free(ann, [extent])
    assert.deepEqual([live(extents), extents.isEmpty(1)], [0, false])
    one()
    one()
    const meanwhile = await extents.reserve(256 * kib)
    assert.notEqual(meanwhile.start, grant.start)
    extents.release(meanwhile)
    two()
    assert.equal(extents.isEmpty(1), true)
    assert.equal((await extents.reserve(256 * kib)).start, grant.start)
  })

  it("keep spans that a moved record still owns while they are being read", async () => {
    const { extents } = make()
    const { extent } = await keep(extents, ann)
    const unpin = extents.pin([extent])
    extents.free(ann, [extent])
    extents.keep(ann, [extent])
    unpin()
    assert.equal(live(extents), 256 * kib)
    extents.free(ann, [extent])
    assert.equal(extents.isEmpty(1), true)
  })

  it("allocate shorter spans on a full disk, and refuse if none is long enough", async () => {
    const { extents } = make(1)
    const grants = await Promise.all(Array.from({ length: 4 }, () => extents.reserve(256 * kib)))
    await assert.rejects(extents.reserve(256 * kib), { code: "ENOSPC" })
    for (const grant of [grants[0], grants[2]]) if (grant) extents.release(grant)
    const part = await extents.reserve(400 * kib)
    assert.equal(part.end - part.start, 256 * kib)
    assert.equal(dataBytes(part.end - part.start), 192 * kib)
  })

  it("do not refuse because of a file that was started on a full disk", async () => {
    const { segments } = fakeSegments()
    const met: Array<(cause: Error) => void> = []
    let is_full = true
    const take: Segments["take"] = (kind, bytes) =>
      is_full ? new Promise((_, reject) => met.push(reject)) : segments.take(kind, bytes)
    const extents = makeExtents({ segments: { ...segments, take }, segment_bytes, fail: noFail })
    const early = extents.reserve(256 * kib)
    is_full = false
    const late = extents.reserve(256 * kib)
    met[0]?.(Object.assign(new Error("full"), { code: "ENOSPC" }))
    await assert.rejects(early, { code: "ENOSPC" })
    assert.equal((await late).end - (await late).start, 256 * kib)
  })

  it("keep owned spans beyond the end of a file with a lost superblock", async () => {
    const { extents, files } = make()
    const { extent } = await keep(extents, ann)
    const images = Array.from(extents.image())
    const [[number, segment] = assert.fail()] = files
    const bytes = data_start + 100 * kib
    files.set(number, { ...segment, bytes, written_bytes: bytes })
    const { segments } = fakeSegments()
    const find = () => files.get(number)
    const again = makeExtents({
      ...{ segment_bytes, fail: noFail, images },
      segments: { ...segments, find, all: () => Array.from(files.values()) },
    })
    assert.equal(live(again), 256 * kib)
    again.free(ann, [extent])
    assert.deepEqual([live(again), again.bytes().dead], [0, 256 * kib])
    assert.equal((await again.reserve(256 * kib)).start, data_start)
  })

  it("reuse written space before they grow, and count only that", async () => {
    const { extents } = make()
    const first = await keep(extents, ann, 600 * kib)
    const second = await keep(extents, bob, 600 * kib)
    assert.deepEqual([first.grant.segment.number, second.grant.segment.number], [1, 2])
    assert.equal(extents.bytes().dead, 0)
    extents.free(ann, [first.extent])
    const counts = () =>
      extents
        .files()
        .map(({ live_bytes, free_bytes, data_bytes }) => [
          ...[live_bytes, free_bytes, data_bytes].map((bytes) => bytes / kib),
        ])
    assert.deepEqual(counts().slice(0, 2), [
      [0, 600, 600],
      [600, 0, 600],
    ])
    // The second file was used last and could grow.
    const third = await extents.reserve(400 * kib)
    assert.deepEqual([third.segment.number, third.start], [1, data_start])
    const fourth = await extents.reserve(400 * kib)
    assert.deepEqual([fourth.segment.number, fourth.start], [1, third.end])
    // Reserved space that was never written leaves no trace.
    extents.release(fourth)
    assert.equal(extents.files()[0]?.data_bytes, 600 * kib)
  })

  it("use up written space, in parts too, after a write found the disk full", async () => {
    const { extents, files } = make(1)
    const grants = await Promise.all(Array.from({ length: 3 }, () => keep(extents, ann)))
    for (const { extent } of [grants[0], grants[2]].flatMap((one) => one ?? [])) {
      extents.free(ann, [extent])
    }
    const before = await extents.reserve(500 * kib)
    assert.equal(before.start, data_start + 512 * kib)
    extents.release(before)
    extents.noteFull()
    const parts = [await extents.reserve(500 * kib), await extents.reserve(500 * kib)]
    const found = parts.map(
      ({ start, end }) => `${(start - data_start) / kib} ${(end - start) / kib}`,
    )
    assert.deepEqual(new Set(found), new Set(["0 256", "512 256"]))
    // It is used up: the next attempt shows whether the disk has space again.
    const after = await extents.reserve(200 * kib)
    assert.equal(after.start, data_start + 768 * kib)
    assert.equal(files.size, 1)
  })

  it("allocate nothing from a closed file", async () => {
    const { extents } = make()
    await extents.reserve(64 * kib)
    extents.close(1, true)
    assert.equal((await extents.reserve(64 * kib)).segment.number, 2)
    extents.close(1, false)
    extents.close(2, true)
    extents.close(3, true)
    assert.equal((await extents.reserve(64 * kib)).segment.number, 1)
  })

  it("fit as much of a blob as a span holds with its table", () => {
    for (const bytes of [1, 65_536, 65_537, 1_000_000]) {
      assert(spanBytes(bytes) >= bytes + 4 * Math.ceil(bytes / 65_536))
      const data = dataBytes(spanBytes(bytes))
      assert(spanBytes(data) <= spanBytes(bytes) && data % 65_536 === 0)
    }
  })
})

const step = fc.record({
  kind: fc.constantFrom(
    "reserve",
    "reserve",
    "extend",
    "trim",
    "release",
    "keep",
    "free",
    "pin",
    "unpin",
  ),
  which: fc.nat(30),
  pages: fc.integer({ min: 1, max: 120 }),
})
type Step = typeof step extends fc.Arbitrary<infer A> ? A : never

const overlap = (one: Allocation, other: Allocation) =>
  one.segment === other.segment && one.start < other.end && other.start < one.end

describe("any history of an extent file", () => {
  it("has no page with two owners", async () => {
    const holds = async (steps: ReadonlyArray<Step>) => {
      const { extents, restored } = make()
      const granted: Array<Allocation> = []
      const kept: Array<{ readonly grant: Allocation; readonly extent: Extent }> = []
      const pinned: Array<{ readonly grant: Allocation; readonly unpin: () => void }> = []
      const pick = <A>(from: Array<A>, which: number) =>
        from.splice(which % Math.max(1, from.length), 1)[0]
      for (const { kind, which, pages } of steps) {
        const grant = kind === "reserve" ? await extents.reserve(4096 * pages) : undefined
        if (grant) granted.push(grant)
        if (["extend", "trim", "release", "keep"].includes(kind)) {
          const one = pick(granted, which)
          if (!one) continue
          if (kind === "extend") granted.push(extents.extend(one, 4096 * pages) ?? one)
          if (kind === "trim") granted.push(extents.trim(one, one.start + 4096))
          if (kind === "release") extents.release(one)
          if (kind === "keep") {
            const bytes = one.end - one.start - (one.end - one.start > 4096 ? 4096 : 100)
            const extent = { ...extentOf(one), bytes }
            extents.keep(ann, [extent])
            kept.push({ grant: one, extent })
          }
        }
        if (kind === "free") {
          const one = pick(kept, which)
          if (one) extents.free(ann, [one.extent])
        }
        if (kind === "pin") {
          const one = kept[which % Math.max(1, kept.length)]
          if (one) pinned.push({ grant: one.grant, unpin: extents.pin([one.extent]) })
        }
        if (kind === "unpin") pick(pinned, which)?.unpin()
        const own = [...granted, ...kept.map((one) => one.grant)]
        for (const [n, one] of own.entries()) {
          assert(!own.slice(n + 1).some((other) => overlap(one, other)), "given out twice")
        }
        const freed = pinned.filter(({ grant: one }) => !kept.some((some) => some.grant === one))
        for (const { grant: one } of freed) {
          assert(!granted.some((other) => overlap(one, other)), "given out while it was read")
        }
        const bytes = kept.reduce((sum, { extent }) => sum + spanBytes(extent.bytes), 0)
        assert.equal(live(extents), bytes)
      }
      assert.equal(live(restored(extents.image())), live(extents))
      assert.deepEqual(extents.imageSize(), sizeOf(extents.image()))
    }
    await fc.assert(fc.asyncProperty(fc.array(step, { maxLength: 60 }), holds), { numRuns: 200 })
  })
})
