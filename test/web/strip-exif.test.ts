/**
 * Data that the page strips from a photo, to show it as a network sees it that ignores orientation.
 */
import sharp from "sharp"
import { describe, expect, it } from "vitest"
import { withoutExif } from "../../web/plant-disease/strip-exif.ts"
import { photo, turned } from "../world/web/plants/served.ts"

const without = async (bytes: Uint8Array) => {
  const blob = await withoutExif(new Blob([Uint8Array.from(bytes)]))
  return Buffer.from(await blob.arrayBuffer())
}

describe.each(["jpeg", "png"] as const)("a photo as %s", (kind) => {
  it("has no orientation any more, and all of its pixels", async () => {
    const bytes = await turned(kind)
    const less = await without(bytes)
    expect((await sharp(bytes).metadata()).orientation).toBe(6)
    expect((await sharp(less).metadata()).orientation).toBeUndefined()
    expect(await sharp(less).raw().toBuffer()).toEqual(await sharp(bytes).raw().toBuffer())
  })

  it("without EXIF, or cut off anywhere, stays what it is", async () => {
    const bytes = await photo(kind)
    for (let length = 4; length <= bytes.length; length += 1) {
      const part = bytes.subarray(0, length)
      expect((await without(part)).equals(part)).toBe(true)
    }
  })
})

it("ends at the pixels of a JPEG, regardless of their bytes", async () => {
  const text = Buffer.from(
    "\u00ff\u00d8\u00ff\u00da\u0000\u0002Exif\u0000\u0000 and more",
    "latin1",
  )
  expect(await without(text)).toEqual(text)
})
