/** Drawn leaves are reproducible and match their class. */
import { createHash } from "node:crypto"
import { describe, expect, it } from "vitest"
import { demo_classes, drawLeaf, not_a_leaf } from "../leaves/leaf.ts"
import { drawNegative, negative_kinds } from "../leaves/negative.ts"
import { randomOf, shuffled } from "../leaves/noise.ts"

const side = 96

const digest = (bytes: Uint8Array) => createHash("sha256").update(bytes).digest("hex").slice(0, 16)

const indexOf = (name: string) => {
  const index = demo_classes.indexOf(name)
  if (index === -1) throw new Error(`there is no class ${name}`)
  return index
}

/** The margin around the middle of a picture, which is mostly leaf, in pixels. */
const edge = 34

/** The share of pixels in the middle of many leaves that satisfy a predicate. */
const shareOf = (name: string, look: (red: number, green: number, blue: number) => boolean) => {
  let found = 0
  const leaves = 24
  for (let seed = 0; seed < leaves; seed++) {
    const bytes = drawLeaf(indexOf(name), seed, side)
    for (let row = edge; row < side - edge; row++) {
      for (let column = edge; column < side - edge; column++) {
        const at = (row * side + column) * 3
        if (look(bytes[at] ?? 0, bytes[at + 1] ?? 0, bytes[at + 2] ?? 0)) found++
      }
    }
  }
  return found / (leaves * (side - 2 * edge) ** 2)
}

const isGreen = (red: number, green: number, blue: number) =>
  green > red * 1.15 && green > blue * 1.15
const isOrange = (red: number, green: number, blue: number) =>
  red > 150 && red > green * 1.5 && green > blue * 1.6
const isPale = (red: number, green: number, blue: number) =>
  Math.min(red, blue) > 110 && green >= red * 0.97

describe("the classes of the demo model", () => {
  it("are fifteen kinds of leaves and not_a_leaf, all with the prefix Demo", () => {
    expect(demo_classes).toHaveLength(16)
    expect(demo_classes.filter((name) => !name.startsWith("Demo"))).toEqual([])
    expect(demo_classes.at(-1)).toBe(not_a_leaf)
  })

  it("are sorted by code points, like the folders of a data set", () => {
    expect(demo_classes).toEqual([...demo_classes].sort())
  })
})

describe("a drawn leaf", () => {
  it("is reproducible by its seed", () => {
    for (const [index] of demo_classes.entries()) {
      const leaf = digest(drawLeaf(index, 5, side))
      expect(digest(drawLeaf(index, 5, side))).toBe(leaf)
      expect(digest(drawLeaf(index, 6, side))).not.toBe(leaf)
    }
  })

  it("has the right size and is not uniform", () => {
    for (const [index] of demo_classes.entries()) {
      const bytes = drawLeaf(index, 1, side)
      expect(bytes).toHaveLength(side * side * 3)
      expect(new Set(bytes).size).toBeGreaterThan(8)
    }
  })

  it("has not changed since the demo model was trained: retrain it after a change", () => {
    const drawn = ["DemoOval___healthy", "DemoLobed___Rust", "DemoBlade___Blight", not_a_leaf]
    expect(drawn.map((name) => digest(drawLeaf(indexOf(name), 42, 224)))).toMatchInlineSnapshot(`
      [
        "8d14980ec455c0a5",
        "c160acaf2a56a68a",
        "2b351643d03c680b",
        "ae681fdd2ac25455",
      ]
    `)
  })

  it("shows the symptoms of its disease", () => {
    for (const shape of ["Oval", "Lobed", "Blade"]) {
      const healthy = `Demo${shape}___healthy`
      const green = shareOf(healthy, isGreen)
      expect(green).toBeGreaterThan(0.4)
      expect(shareOf(`Demo${shape}___Blight`, isGreen)).toBeLessThan(green * 0.8)
      expect(shareOf(`Demo${shape}___Leaf_spot`, isGreen)).toBeLessThan(green * 0.97)
      const orange = shareOf(healthy, isOrange)
      expect(shareOf(`Demo${shape}___Rust`, isOrange)).toBeGreaterThan(orange + 0.02)
      const pale = shareOf(healthy, isPale)
      expect(shareOf(`Demo${shape}___Powdery_mildew`, isPale)).toBeGreaterThan(pale + 0.03)
    }
  })

  it("covers a share of the picture that depends on its shape", () => {
    expect(shareOf("DemoOval___healthy", isGreen)).toBeGreaterThan(
      shareOf("DemoBlade___healthy", isGreen),
    )
  })
})

describe("a picture without a leaf", () => {
  it("has a kind for training or one that is held back, never both", () => {
    const { trained, held_back } = negative_kinds
    expect(trained.filter((kind) => held_back.includes(kind))).toEqual([])
    expect(trained.length).toBeGreaterThan(5)
    expect(held_back.length).toBeGreaterThan(3)
  })

  it("can be drawn for each kind, and all differ", () => {
    const kinds = [...negative_kinds.trained, ...negative_kinds.held_back]
    const drawn = kinds.flatMap((kind) =>
      [1, 2].map((seed) => digest(drawNegative(kind, randomOf(seed), side))),
    )
    expect(new Set(drawn).size).toBe(kinds.length * 2)
  })

  it("of an unknown kind is an error", () => {
    expect(() => drawNegative("leaf", randomOf(1), side)).toThrow("the kind leaf")
  })

  it("has one of the requested kinds", () => {
    const of_kind = drawLeaf(indexOf(not_a_leaf), 3, side, ["flat"])
    const of_other = drawLeaf(indexOf(not_a_leaf), 3, side, ["noise"])
    expect(digest(of_kind)).not.toBe(digest(of_other))
  })
})

describe("a random order", () => {
  it("contains each number once", () => {
    expect([...shuffled(randomOf(1), 100)].sort((a, b) => a - b)).toEqual(
      Array.from({ length: 100 }, (_, i) => i),
    )
  })
})
