/** Hashes of the pixels that the first version of the resize kernels computed. */
import { createHash } from "node:crypto"
import { describe, expect, it } from "vitest"
import { type Filter, resampler } from "../resample.ts"

const filters: ReadonlyArray<Filter> = ["bicubic", "bilinear", "nearest"]
const sizes: ReadonlyArray<readonly [number, number]> = [
  ...[1, 2, 3, 4, 5, 7, 8].flatMap((one) => [[one, 9 - one] as const, [one, 400] as const]),
  ...[147, 148, 149, 223, 224, 225, 256, 281, 447, 449].map(
    (one) => [one, 300 - (one >> 1)] as const,
  ),
  [224, 1],
  [1, 224],
  [224, 300],
  [300, 224],
  [640, 480],
  [500, 400],
  [400, 500],
  [1024, 768],
  [65_535, 1],
  [1, 65_535],
  [4000, 3000],
]

/** Noise with runs of black and white, so that a filter overflows a byte. */
const noise = (width: number, height: number) => {
  const rgb = new Uint8Array(width * height * 3)
  for (let n = 0; n < rgb.length; n++) {
    const mixed = Math.imul(n + width * 31 + height, 0x9e3779b1)
    const value = (mixed ^ (mixed >>> 15)) & 0xff
    rgb[n] = value < 60 ? 0 : value > 200 ? 255 : value
  }
  return { rgb, width, height }
}

const images = sizes.map(([width, height]) => noise(width, height))

const hashOf = (side: number, filter: Filter) => {
  const resized = resampler(side)
  const hash = createHash("sha256")
  for (const image of images) hash.update(resized(image, filter))
  return hash.digest("hex").slice(0, 16)
}

/** By side: the network's, a small one, and one whose rows are not a multiple of a vector. */
const recorded = {
  4: ["66622f9095b5be56", "a84125be5ec079b0", "810c18b9c26fc0db"],
  148: ["ff553716d66e4d97", "709a67a02a2afc6e", "8e234bfc1a2ef71a"],
  224: ["e53d44d6bc8be4aa", "b5ad139d9faca6a2", "8b64bf87ad14c4dc"],
}

describe.each(Object.entries(recorded))("a resize to %s", (side, hashes) => {
  it("has the recorded pixels for every size and filter", () => {
    expect(filters.map((filter) => hashOf(Number(side), filter))).toEqual(hashes)
  })
})
