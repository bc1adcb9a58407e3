/** Compares pixels with recorded ones of Pillow 9.4, so that Pillow is not needed. */
import { createHash } from "node:crypto"
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, it } from "vitest"
import { decode, type ImageOptions } from "../../images/image.ts"

const options = { pixels_max: 10_000, auto_orient: false }

const pixels = async (name: string, change: Partial<ImageOptions> = {}) => {
  const path = join(import.meta.dirname, "pillow-jpegs", `${name}.jpg`)
  const decoded = await decode(readFileSync(path), { ...options, ...change })
  if ("problem" in decoded) throw new Error(decoded.detail)
  const { rgb, width, height } = decoded
  return [width, height, createHash("sha256").update(rgb).digest("hex").slice(0, 16)]
}

/** SHA-256 of `convert("RGB").tobytes()`. */
const recorded = {
  "420": "9897ea74fee40134",
  "422": "308a431964026f51",
  "444": "69afdb09bdcd0d2a",
  progressive: "9897ea74fee40134",
  gray: "c1b5f97fb437f9b3",
  cmyk: "4ea258a0fb07d638",
  exif: "9897ea74fee40134",
}

describe("a JPEG is decoded like in Pillow", () => {
  it.each(Object.entries(recorded))("%s", async (name, hash) => {
    expect(await pixels(name)).toEqual([37, 29, hash])
  })

  it("with EXIF orientation applied", async () => {
    expect(await pixels("exif", { auto_orient: true })).toEqual([29, 37, "ab88815bb8fe1cc4"])
  })
})
