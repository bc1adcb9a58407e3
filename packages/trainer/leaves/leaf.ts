/**
 * Draws leaves for the demo model: three shapes in five states, with random backgrounds and light.
 *
 * Every class name begins with Demo, so that it is not mistaken for a real plant.
 * Source: decisions of document 3, plant model.
 */
import { paintGround } from "./background.ts"
import { between, type Canvas, type Colour, canvasOf, develop, dye } from "./canvas.ts"
import { type PlacedLeaf, paintMarks, state_names, yellowing } from "./mark.ts"
import { drawNegative, negative_kinds } from "./negative.ts"
import { type Noise, noiseOf, type Random, randomOf, seedOf, upTo, within } from "./noise.ts"
import { type LeafShape, shape_names, shapeOf } from "./shape.ts"

/** The class of pictures without a leaf. */
export const not_a_leaf = "Demo_not_a_leaf"

const drawn = shape_names.flatMap((shape) =>
  state_names.map((state) => ({ name: `Demo${shape}___${state}`, shape, state })),
)

/** In the order of the network's outputs: sorted by code points, like the folders of a data set. */
export const demo_classes: ReadonlyArray<string> = [
  ...drawn.map(({ name }) => name),
  not_a_leaf,
].sort()

interface Pose {
  readonly turn: number
  /** The scale of the leaf's coordinates, relative to half of the side. */
  readonly size: number
  readonly right: number
  readonly down: number
  readonly bend: number
}

const poseOf = (random: Random, shape: LeafShape): Pose => ({
  turn: within(random, -Math.PI, Math.PI),
  size: within(random, 0.74, 1.02),
  right: within(random, -0.12, 0.12),
  down: within(random, -0.12, 0.12),
  bend: within(random, -shape.bend, shape.bend),
})

/** The v² at which the bend is zero, so that a bent leaf stays centred. */
const still = 0.3

const placeLeaf = (side: number, shape: LeafShape, pose: Pose): PlacedLeaf => {
  const scale = (pose.size * side) / 2
  const cosine = Math.cos(pose.turn)
  const sine = Math.sin(pose.turn)
  const middle = { column: (side * (1 + pose.right)) / 2, row: (side * (1 + pose.down)) / 2 }
  const leaf = {
    u: new Float32Array(side * side),
    v: new Float32Array(side * side),
    cover: new Float32Array(side * side),
  }
  for (let row = 0, at = 0; row < side; row++) {
    for (let column = 0; column < side; column++, at++) {
      const x = (column + 0.5 - middle.column) / scale
      const y = (row + 0.5 - middle.row) / scale
      const v = x * sine + y * cosine
      const u = x * cosine - y * sine + pose.bend * (v * v - still)
      leaf.u[at] = u
      leaf.v[at] = v
      leaf.cover[at] = Math.min(1, Math.max(0, shape.depth(u, v) * scale + 0.5))
    }
  }
  const place = (u: number, v: number) => {
    const straight = u - pose.bend * (v * v - still)
    const x = straight * cosine + v * sine
    const y = v * cosine - straight * sine
    return [x * scale + middle.column, y * scale + middle.row] as const
  }
  return { ...leaf, depth: shape.depth, place, scale }
}

/** Paints the shadow, with a random offset. */
const paintShadow = ({ side, rgb }: Canvas, { cover }: PlacedLeaf, random: Random) => {
  const down = Math.round(side * within(random, 0, 0.03))
  const right = Math.round(side * within(random, -0.03, 0.03))
  const dark = within(random, 0.45, 0.85)
  for (let row = down; row < side; row++) {
    for (let column = Math.max(0, right); column < side + Math.min(0, right); column++) {
      const shown = cover[(row - down) * side + column - right] ?? 0
      if (shown > 0) dye(rgb, (row * side + column) * 3, [20, 20, 20], shown * (1 - dark))
    }
  }
}

interface Flesh {
  readonly green: Colour
  readonly vein: Colour
  readonly old: Colour
  readonly noise: Noise
  /** How much lighter one half of the leaf is. */
  readonly fold: number
  /** The largest yellowing of the edge. */
  readonly age: number
}

const fleshOf = (random: Random): Flesh => {
  const green = between(random, [38, 92, 28], [92, 150, 68])
  const pale = within(random, 26, 60)
  return {
    green,
    vein: [green[0] + pale, green[1] + pale, green[2] + pale * 0.8],
    old: between(random, [130, 135, 40], [180, 175, 70]),
    noise: noiseOf(random),
    fold: within(random, -0.12, 0.12),
    age: random() < 0.3 ? within(random, 0.1, 0.5) : 0,
  }
}

const paintFlesh = ({ side, rgb }: Canvas, leaf: PlacedLeaf, shape: LeafShape, flesh: Flesh) => {
  const dyed: [number, number, number] = [0, 0, 0]
  const { green, vein, old, noise } = flesh
  for (let at = 0; at < side * side; at++) {
    const shown = leaf.cover[at] ?? 0
    if (shown === 0) continue
    const u = leaf.u[at] ?? 0
    const v = leaf.v[at] ?? 0
    const patch = 0.82 + 0.36 * noise(u * 6 + 40, v * 6 + 40)
    const light = patch * (u > 0 ? 1 + flesh.fold : 1 - flesh.fold)
    const ribbed = shape.vein(u, v) * 0.75
    const aged = flesh.age === 0 ? 0 : flesh.age * yellowing(noise, shape.depth(u, v), u, v)
    for (let c = 0; c < 3; c++) {
      const fresh = (green[c] ?? 0) * (1 - aged) + (old[c] ?? 0) * aged
      dyed[c] = (fresh * (1 - ribbed) + (vein[c] ?? 0) * ribbed) * light
    }
    dye(rgb, at * 3, dyed, shown)
  }
}

/**
 * Draws a picture of a class of `demo_classes`, uint8[side, side, 3], reproducible by its seed.
 * `kinds` are the kinds of pictures without a leaf.
 */
export const drawLeaf = (
  class_index: number,
  seed: number,
  side: number,
  kinds: ReadonlyArray<string> = negative_kinds.trained,
) => {
  const random = randomOf(seedOf(seed, class_index))
  const wanted = drawn.find(({ name }) => name === demo_classes[class_index])
  if (wanted === undefined) {
    return drawNegative(kinds[upTo(random, kinds.length)] ?? "", random, side)
  }
  const canvas = canvasOf(side)
  const shape = shapeOf(wanted.shape, random)
  const leaf = placeLeaf(side, shape, poseOf(random, shape))
  paintGround(canvas, random)
  paintShadow(canvas, leaf, random)
  paintFlesh(canvas, leaf, shape, fleshOf(random))
  paintMarks(canvas, leaf, wanted.state, random)
  return develop(canvas, random)
}
