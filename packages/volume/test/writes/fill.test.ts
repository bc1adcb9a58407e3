/** A log file is filled with zeros, which bypass the page cache. */
import { expect, it } from "vitest"
import type { VolumeFile } from "../../disk.ts"
import { isAligned } from "../../extents/memory.ts"
import { page_bytes } from "../../log/format.ts"
import { fillZeros } from "../../log/segments.ts"

it("a span is filled to its last byte, in whole pages, durably", async () => {
  const [start, end] = [2 * page_bytes, 40 * 2 ** 20 + 3 * page_bytes]
  let at = start
  let unsynced = 0
  const file: Pick<VolumeFile, "write" | "datasync"> = {
    write: async (parts, position) => {
      expect(position).toBe(at)
      for (const part of parts) {
        expect(isAligned(part)).toBe(true)
        expect(part.every((byte) => byte === 0)).toBe(true)
        at += part.length
        unsynced += part.length
      }
    },
    datasync: async () => {
      expect(unsynced).toBeLessThanOrEqual(16 * 2 ** 20)
      unsynced = 0
    },
  }
  await fillZeros(file, start, end)
  expect([at, unsynced]).toEqual([end, 0])
})
