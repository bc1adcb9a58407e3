/**
 * Draws pictures without a leaf. The demo model is trained on some kinds; the others are held back,
 * to measure how it handles unknown pictures.
 */
import { paintGround } from "./background.ts"
import { anyColour, between, type Canvas, canvasOf, cover, develop } from "./canvas.ts"
import { cloud, noiseOf, type Random, upTo, within } from "./noise.ts"
import { paintBokeh, paintLandscape, paintPortrait, paintRoom } from "./scene.ts"

type Paint = (canvas: Canvas, random: Random) => void

const flat: Paint = (canvas, random) => {
  const colour = anyColour(random)
  cover(canvas, (_x, _y, put) => put(colour))
}

const static_noise: Paint = ({ rgb }, random) => {
  const is_gray = random() < 0.3
  for (let at = 0; at < rgb.length; at += 3) {
    const value = random() * 255
    rgb[at] = value
    rgb[at + 1] = is_gray ? value : random() * 255
    rgb[at + 2] = is_gray ? value : random() * 255
  }
}

const clouds: Paint = (canvas, random) => {
  const noise = noiseOf(random)
  const one = anyColour(random)
  const other = anyColour(random)
  const fine = within(random, 1, 12)
  cover(canvas, (x, y, put) => {
    put(one)
    put(other, cloud(noise, x * fine + 40, y * fine + 40))
  })
}

const gradient: Paint = (canvas, random) => {
  const one = anyColour(random)
  const other = anyColour(random)
  const turn = random() * Math.PI * 2
  const is_round = random() < 0.5
  cover(canvas, (x, y, put) => {
    const along = (x * Math.cos(turn) + y * Math.sin(turn)) / 2.8 + 0.5
    put(one)
    put(other, is_round ? Math.min(1, Math.hypot(x, y) / 1.4) : along)
  })
}

const stripes: Paint = (canvas, random) => {
  const one = anyColour(random)
  const other = anyColour(random)
  const turn = random() * Math.PI
  const count = within(random, 2, 24)
  const is_check = random() < 0.4
  cover(canvas, (x, y, put) => {
    const along = (x * Math.cos(turn) + y * Math.sin(turn)) * count
    const across = (y * Math.cos(turn) - x * Math.sin(turn)) * count
    const odd = (Math.floor(along) + (is_check ? Math.floor(across) : 0)) & 1
    put(odd === 0 ? one : other)
  })
}

/** Circles and boxes, many of them green, so that neither colour nor outline suggests a leaf. */
const figures: Paint = (canvas, random) => {
  paintGround(canvas, random)
  for (let n = 1 + upTo(random, 8); n > 0; n--) {
    const is_green = random() < 0.5
    const colour = is_green ? between(random, [30, 85, 20], [100, 160, 75]) : anyColour(random)
    const x0 = within(random, -0.9, 0.9)
    const y0 = within(random, -0.9, 0.9)
    const width = within(random, 0.06, 0.7)
    const height = within(random, 0.06, 0.7)
    const is_round = random() < 0.5
    const turn = random() * Math.PI
    const cosine = Math.cos(turn)
    const sine = Math.sin(turn)
    cover(canvas, (x, y, put) => {
      const along = Math.abs((x - x0) * cosine + (y - y0) * sine) / width
      const across = Math.abs((y - y0) * cosine - (x - x0) * sine) / width
      const off = is_round ? Math.hypot(along, across) : Math.max(along, (across * width) / height)
      if (off < 1) put(colour)
    })
  }
}

/** Rows of dark strokes on paper. */
const writing: Paint = (canvas, random) => {
  const ink = between(random, [0, 0, 0], [70, 70, 90])
  const sheet = between(random, [200, 200, 190], [255, 255, 255])
  const rows = within(random, 5, 16)
  const letters = within(random, 12, 40)
  const noise = noiseOf(random)
  cover(canvas, (x, y, put) => {
    put(sheet)
    const row = y * rows - Math.floor(y * rows)
    if (row < 0.25 || row > 0.8) return
    if (noise(x * letters + 50, y * rows * 3 + 50) > 0.58) put(ink)
  })
}

const bricks: Paint = (canvas, random) => {
  const brick = between(random, [110, 50, 35], [185, 110, 90])
  const mortar = between(random, [140, 135, 125], [210, 205, 200])
  const rows = within(random, 3, 9)
  const noise = noiseOf(random)
  cover(canvas, (x, y, put) => {
    const row = Math.floor(y * rows)
    const along = x * rows * 0.5 + (row & 1) * 0.5
    const is_joint = along - Math.floor(along) < 0.06 || y * rows - row < 0.12
    put(is_joint ? mortar : brick)
    put([30, 25, 20], 0.35 * cloud(noise, x * 20 + 50, y * 20 + 50))
  })
}

/** Cells with an edge, like pebbles. */
const pebbles: Paint = (canvas, random) => {
  const stones = Array.from({ length: 12 + upTo(random, 60) }, () => ({
    x: within(random, -1.1, 1.1),
    y: within(random, -1.1, 1.1),
    colour: between(random, [60, 55, 45], [200, 190, 175]),
  }))
  cover(canvas, (x, y, put) => {
    let nearest = stones[0]
    let first = 9
    let second = 9
    for (const stone of stones) {
      const off = (stone.x - x) ** 2 + (stone.y - y) ** 2
      if (off < first) {
        second = first
        first = off
        nearest = stone
      } else if (off < second) second = off
    }
    put(nearest?.colour ?? [0, 0, 0])
    put([25, 22, 20], Math.max(0, 1 - (Math.sqrt(second) - Math.sqrt(first)) * 14))
  })
}

const waves: Paint = (canvas, random) => {
  const low = anyColour(random)
  const high = anyColour(random)
  const sums = Array.from({ length: 5 }, () => [
    within(random, -14, 14),
    within(random, -14, 14),
    random() * 6,
  ])
  cover(canvas, (x, y, put) => {
    let height = 0
    for (const [a = 0, b = 0, c = 0] of sums) height += Math.sin(x * a + y * b + c)
    put(low)
    put(high, Math.min(1, Math.max(0, height / 6 + 0.5)))
  })
}

const trained: Readonly<Record<string, Paint>> = {
  flat,
  noise: static_noise,
  clouds,
  gradient,
  stripes,
  figures,
  writing,
  landscape: paintLandscape,
  bokeh: paintBokeh,
  // A leaf's background without the leaf.
  ground: (canvas, random) => paintGround(canvas, random),
}

const held_back: Readonly<Record<string, Paint>> = {
  bricks,
  pebbles,
  waves,
  portrait: paintPortrait,
  room: paintRoom,
}

/** The names of the kinds: those for training, and those only for evaluation. */
export const negative_kinds = {
  trained: Object.keys(trained),
  held_back: Object.keys(held_back),
} as const

/** Draws a picture without a leaf, uint8[side, side, 3]. */
export const drawNegative = (kind: string, random: Random, side: number) => {
  const canvas = canvasOf(side)
  const paint = trained[kind] ?? held_back[kind]
  if (paint === undefined) throw new Error(`the kind ${kind} does not exist`)
  paint(canvas, random)
  return develop(canvas, random)
}
