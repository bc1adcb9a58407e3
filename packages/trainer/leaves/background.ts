/** Backgrounds of drawn leaves: paper, cloth, soil, foliage, or wood and stone. */
import { between, type Canvas, type Colour, cover, dye } from "./canvas.ts"
import { cloud, noiseOf, type Random, upTo, within } from "./noise.ts"

type Ground = (canvas: Canvas, random: Random) => void

/** Fills with a textured colour; `rough` is the contrast, `fine` the frequency. */
const textured = (canvas: Canvas, random: Random, colour: Colour, fine: number, rough: number) => {
  const noise = noiseOf(random)
  const dyed: [number, number, number] = [0, 0, 0]
  cover(canvas, (x, y, put) => {
    const light = 1 - rough / 2 + rough * cloud(noise, x * fine + 40, y * fine + 40)
    dyed[0] = colour[0] * light
    dyed[1] = colour[1] * light
    dyed[2] = colour[2] * light
    put(dyed)
  })
}

const paper: Ground = (canvas, random) => {
  const gray = within(random, 120, 215)
  const colour = between(random, [gray - 12, gray - 10, gray - 16], [gray + 8, gray + 8, gray + 12])
  textured(canvas, random, colour, within(random, 2, 12), within(random, 0.04, 0.25))
}

const cloth: Ground = (canvas, random) => {
  const colour = between(random, [15, 15, 20], [65, 60, 75])
  textured(canvas, random, colour, within(random, 8, 30), within(random, 0.2, 0.7))
}

const soil: Ground = (canvas, random) => {
  const colour = between(random, [85, 62, 42], [138, 104, 78])
  textured(canvas, random, colour, within(random, 6, 24), within(random, 0.5, 1))
}

/** Blurred round spots in greens and browns. */
const foliage: Ground = (canvas, random) => {
  textured(canvas, random, between(random, [25, 40, 20], [70, 95, 50]), 2, 0.6)
  const { side, rgb } = canvas
  for (let n = 6 + upTo(random, 12); n > 0; n--) {
    const colour = between(random, [35, 60, 20], [125, 150, 80])
    const radius = side * within(random, 0.06, 0.22)
    const column = random() * side
    const row = random() * side
    const strength = within(random, 0.3, 0.7)
    const top = Math.max(0, Math.floor(row - radius))
    const left = Math.max(0, Math.floor(column - radius))
    for (let y = top; y < Math.min(side, row + radius); y++) {
      for (let x = left; x < Math.min(side, column + radius); x++) {
        const off = ((x - column) ** 2 + (y - row) ** 2) / radius ** 2
        if (off < 1) dye(rgb, (y * side + x) * 3, colour, strength * (1 - off) ** 0.7)
      }
    }
  }
}

/** Wood or stone: irregular bands. */
const grained: Ground = (canvas, random) => {
  const noise = noiseOf(random)
  const dark = between(random, [70, 50, 35], [130, 110, 90])
  const light = between(random, [120, 95, 70], [190, 170, 145])
  const turn = random() * Math.PI
  const along = Math.cos(turn)
  const across = Math.sin(turn)
  const bands = within(random, 4, 14)
  cover(canvas, (x, y, put) => {
    put(dark)
    const band = noise((x * along + y * across) * bands + 50, (y * along - x * across) * 1.5 + 50)
    put(light, band)
  })
}

const grounds = [paper, paper, cloth, soil, foliage, grained]

/** Paints a random background. */
export const paintGround = (canvas: Canvas, random: Random) =>
  grounds[upTo(random, grounds.length)]?.(canvas, random)
