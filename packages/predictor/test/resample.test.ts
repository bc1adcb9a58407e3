import { describe, expect, it } from "vitest"
import { coefficients, nearest, type Pixels, resampler } from "../resample.ts"
import { random } from "./random.ts"

const side = 224
const seed = 20_261_122

/** A straightforward implementation: rows, then columns, with bytes in between. */
const naive = ({ rgb, width, height }: Pixels, filter: "bicubic" | "bilinear") => {
  const half = 2 ** 21
  const pass = (from: Uint8Array, length: number, at: (i: number, line: number) => number) => {
    const { first, count, weights, size } = coefficients(filter, length, side)
    return (i: number, line: number, colour: number) => {
      let sum = half
      for (let j = 0; j < (count[i] ?? 0); j++) {
        const value = from[at((first[i] ?? 0) + j, line) + colour] ?? 0
        sum += value * (weights[i * size + j] ?? 0)
      }
      return Math.min(255, Math.max(0, Math.floor(sum / 2 ** 22)))
    }
  }
  const fill = (rows: number, one: (x: number, y: number, colour: number) => number) =>
    Uint8Array.from({ length: side * rows * 3 }, (_, n) =>
      one(Math.floor(n / 3) % side, Math.floor(n / 3 / side), n % 3),
    )
  const across = pass(rgb, width, (x, y) => (y * width + x) * 3)
  const wide = width === side ? rgb : fill(height, across)
  if (height === side) return wide
  const down = pass(wide, height, (y, x) => (y * side + x) * 3)
  return fill(side, (x, y, colour) => down(y, x, colour))
}

const noise = (width: number, height: number): Pixels => {
  const next = random(width * 7919 + height + seed)
  // Adjacent black and white make the filter overflow a byte.
  const byte = () => (next(3) === 0 ? next(2) * 255 : next(256))
  return { rgb: Uint8Array.from({ length: width * height * 3 }, byte), width, height }
}

const lengths = random(seed)
const some = Array.from({ length: 12 }, () => [1 + lengths(700), 1 + lengths(700)] as const)

describe(`a resize to 224 by 224 (seed ${seed})`, () => {
  const resized = resampler(side)

  const sizes: ReadonlyArray<readonly [number, number]> = [
    [1, 1],
    [224, 224],
    [224, 1],
    [1, 224],
    [224, 300],
    [300, 224],
    [223, 225],
    [256, 256],
    [280, 281],
    [281, 280],
    [2000, 3],
    [3, 2000],
    ...some,
  ]
  it.each(sizes)("of %i by %i agrees with the plain loops", (width, height) => {
    const image = noise(width, height)
    for (const filter of ["bicubic", "bilinear"] as const) {
      expect(Buffer.compare(resized(image, filter), naive(image, filter))).toBe(0)
    }
  })

  it("returns an image of that size unchanged", () => {
    const image = noise(side, side)
    expect(resized(image, "bicubic")).toEqual(image.rgb)
  })

  it("supports a side of 65,535 pixels and does not keep its memory", () => {
    const tall = { rgb: new Uint8Array(65_535 * 3).fill(200), width: 1, height: 65_535 }
    expect(new Set(resized(tall, "bicubic"))).toEqual(new Set([200]))
    const wide = { ...tall, width: 65_535, height: 1 }
    expect(new Set(resized(wide, "bilinear"))).toEqual(new Set([200]))
    const image = noise(20, 20)
    expect(resized(image, "bicubic")).toEqual(naive(image, "bicubic"))
  })

  it("does not depend on the previous image", () => {
    const [large, small] = [noise(600, 500), noise(5, 4)]
    const alone = resampler(side)(small, "bicubic")
    resized(large, "bicubic")
    expect(resized(small, "bicubic")).toEqual(alone)
  })

  it("nearest chooses the pixel with the nearest centre, at the edges too", () => {
    expect([...nearest(2, 4)]).toEqual([0, 0, 1, 1])
    expect([...nearest(6, 3)]).toEqual([1, 3, 5])
    const image = noise(5, 4)
    const out = resized(image, "nearest")
    expect(out.subarray(0, 3)).toEqual(image.rgb.subarray(0, 3))
    expect(out.subarray(-3)).toEqual(image.rgb.subarray(-3))
  })
})
