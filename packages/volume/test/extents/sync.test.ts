/** Shared syncs of extent files. */
import assert from "node:assert/strict"
import { describe, it } from "vitest"
import { makeExtents } from "../../extents/files.ts"
import { fakeSegments, no_file, segment_bytes } from "../fake-segments.ts"

const noFail = (detail: string) => assert.fail(detail)

describe("syncs of a file", () => {
  it("are shared by waiting callers, but not with a write during the sync", async () => {
    const ends: Array<() => void> = []
    const file = { ...no_file, datasync: () => new Promise<void>((end) => ends.push(end)) }
    const { segments } = fakeSegments(1, file)
    const extents = makeExtents({ segments, segment_bytes, fail: noFail })
    const { segment } = await extents.reserve(4096)
    const first = extents.sync(segment)
    const later = [extents.sync(segment), extents.sync(segment), extents.sync(segment)]
    assert.equal(ends.length, 1)
    ends[0]?.()
    await first
    await Promise.resolve()
    await Promise.resolve()
    assert.equal(ends.length, 2)
    const last = extents.sync(segment)
    ends[1]?.()
    await Promise.all(later)
    await Promise.resolve()
    await Promise.resolve()
    assert.equal(ends.length, 3)
    ends[2]?.()
    await last
  })

  it("make the volume read-only if they fail", async () => {
    const failed: Array<string> = []
    const file = { ...no_file, datasync: () => Promise.reject(new Error("EIO")) }
    const { segments } = fakeSegments(1, file)
    const fail = (detail: string) => failed.push(detail)
    const extents = makeExtents({ segments, segment_bytes, fail })
    const { segment } = await extents.reserve(4096)
    await assert.rejects(extents.sync(segment), /EIO/)
    assert.equal(failed.length, 1)
  })
})
