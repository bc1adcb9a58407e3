/**
 * The outlines and veins of the three leaf shapes.
 *
 * A leaf has its own coordinates: v along its midrib from -1 to 1 (the tip), u across. The shapes
 * are not species.
 */
import { type Random, within } from "./noise.ts"

export const shape_names = ["Oval", "Lobed", "Blade"] as const
export type ShapeName = (typeof shape_names)[number]

export interface LeafShape {
  /** The approximate distance inside the edge; negative outside. */
  readonly depth: (u: number, v: number) => number
  /** The visibility of a vein, 0 to 1. */
  readonly vein: (u: number, v: number) => number
  /** The largest bend. */
  readonly bend: number
}

/** 1 on a line, falling to 0 at `width`. */
const line = (distance: number, width: number) => {
  const off = Math.abs(distance) / width
  return off >= 1 ? 0 : 1 - off * off
}

/** The distance to the nearest integer, 0 to 0.5. */
const toNearest = (value: number) => Math.abs(value - Math.round(value))

const stalk_from = -1.3
const stalk_width = 0.02

/** The stalk belongs to the leaf but gets no marks. */
const stalk = (u: number, v: number) =>
  v < -0.6 && v > stalk_from ? stalk_width - Math.abs(u) : -1

const oval = (random: Random): LeafShape => {
  const half = within(random, 0.46, 0.6)
  const end = 0.88
  const egg = within(random, 0.12, 0.3)
  const teeth = within(random, 0, 0.02)
  const teeth_count = within(random, 9, 14)
  const veins = within(random, 4.5, 6)
  const slant = within(random, 0.5, 0.8)
  return {
    bend: 0.16,
    depth: (u, v) => {
      const over = Math.abs(v) - end
      if (over > 0) return Math.max(stalk(u, v), -Math.hypot(u, over))
      const along = v / end
      const width = half * (1 - along * along) ** 0.62 * (1 - egg * along)
      const tooth = teeth * (1 - Math.abs(along)) * (v * teeth_count - Math.floor(v * teeth_count))
      return Math.max(stalk(u, v), (width + tooth - Math.abs(u)) * 0.85)
    },
    vein: (u, v) => {
      const side = Math.abs(u)
      const middle = line(u, 0.022 * (1.2 - v * 0.6))
      const lateral = line(toNearest((v - side * slant) * veins), 0.07) * (1 - side / half) * 0.8
      return Math.max(middle, lateral)
    },
  }
}

const lobes = 5
const sector = (2 * Math.PI) / lobes

const lobed = (random: Random): LeafShape => {
  const reach = within(random, 0.84, 0.95)
  const cut = within(random, 0.4, 0.56)
  const narrow = within(random, 0.8, 1.25)
  const veins = within(random, 5, 7)
  return {
    bend: 0.08,
    depth: (u, v) => {
      const angle = Math.atan2(u, v)
      const turn = Math.abs(angle - Math.round(angle / sector) * sector) / (sector / 2)
      const edge = reach * (1 - cut * turn ** narrow) * (1 + 0.08 * Math.cos(angle))
      return Math.max(stalk(u, v), (edge - Math.hypot(u, v)) * 0.75)
    },
    vein: (u, v) => {
      const angle = Math.atan2(u, v)
      const off = angle - Math.round(angle / sector) * sector
      const far = Math.hypot(u, v)
      const along = far * Math.cos(off)
      const across = Math.abs(far * Math.sin(off))
      const middle = line(across, 0.02 * (1.2 - along))
      const lateral = line(toNearest((along - across * 0.8) * veins), 0.06) * (0.8 - across * 1.6)
      return Math.max(middle, lateral, 0)
    },
  }
}

const blade = (random: Random): LeafShape => {
  const half = within(random, 0.17, 0.25)
  const end = within(random, 1.02, 1.2)
  const veins = within(random, 20, 28)
  return {
    bend: 0.3,
    depth: (u, v) => {
      const over = Math.abs(v) - end
      if (over > 0) return -Math.hypot(u, over)
      const along = Math.abs(v) / end
      return half * (1 - along ** 2.4) * (1 - 0.15 * v) - Math.abs(u)
    },
    vein: (u, v) =>
      Math.max(line(u, 0.024 * (1.2 - v * 0.4)), line(toNearest(u * veins), 0.16) * 0.45),
  }
}

const shapes = { Oval: oval, Lobed: lobed, Blade: blade }

/** A random leaf of this shape. */
export const shapeOf = (name: ShapeName, random: Random) => shapes[name](random)
