/** Disease symptoms on drawn leaves: spots, pustules, dead patches, mildew. */
import { type Canvas, dye, shade } from "./canvas.ts"
import { cloud, type Noise, noiseOf, type Random, upTo, within } from "./noise.ts"

export const state_names = ["healthy", "Leaf_spot", "Rust", "Blight", "Powdery_mildew"] as const
export type StateName = (typeof state_names)[number]

/** A leaf placed on a canvas, with the leaf's coordinates for each pixel. */
export interface PlacedLeaf {
  readonly u: Float32Array
  readonly v: Float32Array
  /** 0 outside to 1 inside; between them at the edge. */
  readonly cover: Float32Array
  readonly depth: (u: number, v: number) => number
  /** Maps leaf coordinates to a fractional column and row. */
  readonly place: (u: number, v: number) => readonly [column: number, row: number]
  /** Pixels per unit of the leaf's coordinates. */
  readonly scale: number
}

interface Mark {
  readonly u: number
  readonly v: number
  readonly radius: number
  /** Brightness, about 1. */
  readonly tone: number
}

/** Paints one pixel of a mark; `off` is 0 at its centre and 1 at its edge. */
type Stain = (rgb: Float32Array, at: number, off: number, mark: Mark, grain: number) => void

/** Attempts to find positions inside the leaf before drawing fewer marks. */
const tries_max = 900
/** The extent of a stain, in radii. */
const stain_reach = 1.7

const scatter = (
  leaf: PlacedLeaf,
  random: Random,
  count: number,
  radii: readonly [number, number],
  inset: number,
) => {
  const marks: Array<Mark> = []
  for (let tries = 0; marks.length < count && tries < tries_max; tries++) {
    const u = within(random, -0.95, 0.95)
    const v = within(random, -1.05, 1.05)
    if (leaf.depth(u, v) < inset) continue
    const tone = within(random, 0.8, 1.2)
    marks.push({ u, v, radius: within(random, radii[0], radii[1]), tone })
  }
  return marks
}

/** Paints marks on the leaf; `ragged` is the unevenness of their edges. */
const stainAll = (
  { side, rgb }: Canvas,
  leaf: PlacedLeaf,
  marks: ReadonlyArray<Mark>,
  noise: Noise,
  { ragged, fine, stain }: { ragged: number; fine: number; stain: Stain },
) => {
  for (const mark of marks) {
    const [column, row] = leaf.place(mark.u, mark.v)
    const reach = mark.radius * stain_reach * leaf.scale * 1.3 + 1
    const left = Math.max(0, Math.floor(column - reach))
    const right = Math.min(side - 1, Math.ceil(column + reach))
    for (let y = Math.max(0, Math.floor(row - reach)); y <= Math.min(side - 1, row + reach); y++) {
      for (let x = left; x <= right; x++) {
        const pixel = y * side + x
        const shown = leaf.cover[pixel] ?? 0
        if (shown < 0.5) continue
        const u = leaf.u[pixel] ?? 0
        const v = leaf.v[pixel] ?? 0
        const grain = noise(u * fine + 90, v * fine + 90)
        const distance = Math.hypot(u - mark.u, v - mark.v) / mark.radius
        const off = distance * (1 + ragged * (grain - 0.5))
        if (off < stain_reach) stain(rgb, pixel * 3, off, mark, grain)
      }
    }
  }
}

const halo = (off: number, from: number, to: number) =>
  Math.min(1, Math.max(0, (to - off) / (to - from)))

/** Brown and round, with a dark edge, a pale middle and a yellow ring. */
const spotStain: Stain = (rgb, at, off, { tone }) => {
  if (off >= 1) dye(rgb, at, [185, 172, 55], halo(off, 1, 1.6) * 0.75)
  else if (off > 0.72) dye(rgb, at, [62 * tone, 38 * tone, 24], 0.95)
  else if (off > 0.35) dye(rgb, at, [108 * tone, 70 * tone, 38], 0.95)
  else dye(rgb, at, [150 * tone, 120 * tone, 84], 0.9)
}

/** A pustule: orange, raised, in a pale green ring. */
const rustStain: Stain = (rgb, at, off, { tone }) => {
  if (off < 1) dye(rgb, at, [212 * tone, 100 * tone, 22], 0.95)
  else dye(rgb, at, [180, 165, 60], halo(off, 1, 1.7) * 0.5)
}

/** A dead patch with rings, darker towards its edge. */
const blightStain: Stain = (rgb, at, off, { tone }, grain) => {
  if (off >= 1) dye(rgb, at, [140, 132, 58], halo(off, 1, 1.3) * 0.85)
  else {
    const ring = 0.86 + 0.14 * Math.cos(off * 22) + 0.25 * (grain - 0.5)
    const dark = off > 0.85 ? 0.7 : 1
    dye(rgb, at, [124 * tone * ring * dark, 92 * tone * ring * dark, 56 * ring * dark], 0.95)
  }
}

/** A white powder, denser in the middle. */
const mildewStain: Stain = (rgb, at, off, _mark, grain) =>
  dye(rgb, at, [226, 228, 220], Math.min(1, halo(off, 0.2, 1.5) * (0.5 + 0.6 * grain)) * 0.9)

/** Paints the symptoms of a state, with a random but visible severity. */
const paintState = (canvas: Canvas, leaf: PlacedLeaf, state: StateName, random: Random) => {
  const noise = noiseOf(random)
  const severity = within(random, 0.35, 1)
  switch (state) {
    case "healthy":
      return
    case "Leaf_spot": {
      const marks = scatter(leaf, random, 5 + Math.floor(severity * 14), [0.035, 0.085], 0.03)
      return stainAll(canvas, leaf, marks, noise, { ragged: 0.4, fine: 18, stain: spotStain })
    }
    case "Rust": {
      const marks = scatter(leaf, random, 45 + Math.floor(severity * 130), [0.012, 0.026], 0.015)
      return stainAll(canvas, leaf, marks, noise, { ragged: 0.3, fine: 40, stain: rustStain })
    }
    case "Blight": {
      const marks = scatter(leaf, random, 1 + Math.floor(severity * 2.6), [0.22, 0.42], 0.01)
      return stainAll(canvas, leaf, marks, noise, { ragged: 1, fine: 9, stain: blightStain })
    }
    case "Powdery_mildew": {
      const marks = scatter(leaf, random, 4 + Math.floor(severity * 9), [0.09, 0.2], 0.02)
      return stainAll(canvas, leaf, marks, noise, { ragged: 0.9, fine: 26, stain: mildewStain })
    }
  }
}

/** The share of leaves with dirt, independent of the state. */
const dirty_share = 0.35

/** Paints specks that are not symptoms, so that a dark dot alone is not evidence of disease. */
const paintDirt = ({ side, rgb }: Canvas, random: Random) => {
  if (random() > dirty_share) return
  for (let n = 1 + upTo(random, 3); n > 0; n--) {
    const radius = side * within(random, 0.004, 0.01)
    const column = side * within(random, 0.2, 0.8)
    const row = side * within(random, 0.2, 0.8)
    for (let y = Math.ceil(row - radius); y <= row + radius; y++) {
      for (let x = Math.ceil(column - radius); x <= column + radius; x++) {
        if (Math.hypot(x - column, y - row) < radius) shade(rgb, (y * side + x) * 3, 0.55)
      }
    }
  }
}

/** Paints the symptoms of the state, and dirt on some leaves. */
export const paintMarks = (canvas: Canvas, leaf: PlacedLeaf, state: StateName, random: Random) => {
  paintState(canvas, leaf, state, random)
  paintDirt(canvas, random)
}

/** Yellowing from the edge inwards, 0 to 1, which any leaf may have. */
export const yellowing = (noise: Noise, depth: number, u: number, v: number) =>
  depth > 0.12 ? 0 : (1 - depth / 0.12) * cloud(noise, u * 3 + 60, v * 3 + 60)
