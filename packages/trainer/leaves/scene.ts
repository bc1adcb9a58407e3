/** Draws everyday scenes without a leaf. */
import { anyColour, between, type Canvas, cover } from "./canvas.ts"
import { cloud, noiseOf, type Random, upTo, within } from "./noise.ts"

/** Sky, ridges, and a foreground. */
export const paintLandscape = (canvas: Canvas, random: Random) => {
  const noise = noiseOf(random)
  const sky = between(random, [90, 130, 180], [190, 215, 245])
  const cloudy = within(random, 0, 0.9)
  const ground = between(random, [50, 70, 30], [170, 160, 120])
  const ridges = Array.from({ length: 1 + upTo(random, 4) }, (_, i) => ({
    height: within(random, -0.4, 0.3) + i * 0.15,
    rough: within(random, 1, 5),
    tall: within(random, 0.1, 0.6),
    colour: between(random, [40, 60, 40], [140, 150, 160]),
  }))
  cover(canvas, (x, y, put) => {
    put(sky)
    put([245, 245, 245], cloudy * cloud(noise, x * 2 + 50, y * 4 + 50) ** 2)
    for (const { height, rough, tall, colour } of ridges) {
      if (y > height + tall * (cloud(noise, x * rough + 70, height * 9 + 70) - 0.5)) put(colour)
    }
    if (y > 0.45) put(ground, 0.7 + 0.3 * cloud(noise, x * 14 + 50, y * 30 + 50))
  })
}

/** Blurred lights. */
export const paintBokeh = (canvas: Canvas, random: Random) => {
  const dark = between(random, [5, 5, 10], [70, 60, 60])
  const lights = Array.from({ length: 8 + upTo(random, 25) }, () => ({
    x: within(random, -1, 1),
    y: within(random, -1, 1),
    radius: within(random, 0.05, 0.3),
    colour: anyColour(random),
    strength: within(random, 0.2, 0.7),
  }))
  cover(canvas, (x, y, put) => {
    put(dark)
    for (const light of lights) {
      const off = Math.hypot(x - light.x, y - light.y) / light.radius
      if (off < 1) put(light.colour, light.strength * Math.min(1, (1 - off) * 6))
    }
  })
}

/** A head and shoulders in front of a wall. */
export const paintPortrait = (canvas: Canvas, random: Random) => {
  const noise = noiseOf(random)
  const wall = anyColour(random)
  const skin = between(random, [90, 60, 45], [235, 195, 170])
  const hair = between(random, [15, 10, 5], [120, 85, 50])
  const shirt = anyColour(random)
  const x0 = within(random, -0.2, 0.2)
  const wide = within(random, 0.26, 0.4)
  cover(canvas, (x, y, put) => {
    put(wall)
    put([20, 20, 20], 0.3 * cloud(noise, x * 2 + 50, y * 2 + 50))
    if (Math.hypot((x - x0) / (wide * 2.4), (y - 1.15) / 0.65) < 1) put(shirt)
    if (Math.abs(x - x0) < wide * 0.4 && y > 0.1 && y < 0.65) put(skin)
    if (Math.hypot((x - x0) / (wide * 1.15), (y + 0.25) / (wide * 1.4)) < 1) put(hair)
    if (Math.hypot((x - x0) / wide, (y + 0.12) / (wide * 1.3)) < 1) put(skin)
    for (const side of [-1, 1]) {
      const off = Math.hypot((x - x0 - side * wide * 0.4) / 0.05, (y + 0.2) / 0.025)
      if (off < 1) put([25, 20, 20])
    }
    if (Math.hypot((x - x0) / (wide * 0.35), (y - 0.15) / 0.03) < 1) put([150, 60, 60])
  })
}

/** Two walls, a floor of boards, a window and a table. */
export const paintRoom = (canvas: Canvas, random: Random) => {
  const noise = noiseOf(random)
  const wall = between(random, [150, 140, 125], [240, 235, 225])
  const floor = between(random, [80, 55, 35], [170, 130, 95])
  const pane = between(random, [150, 180, 210], [240, 250, 255])
  const table = anyColour(random)
  const corner = within(random, -0.5, 0.5)
  const left = within(random, -0.8, 0.2)
  const level = within(random, 0.05, 0.4)
  cover(canvas, (x, y, put) => {
    const edge = 0.35 + 0.25 * Math.abs(x - corner)
    put(wall)
    if (x < corner) put([60, 60, 60], 0.25)
    if (y > edge) {
      put(floor)
      const board = ((x - corner) / (y + 0.3)) * 6
      put([30, 20, 10], board - Math.floor(board) < 0.07 ? 0.7 : 0.2 * noise(x * 9 + 50, y * 30))
    }
    const across = x - left
    if (across > 0 && across < 0.5 && y > -0.75 && y < -0.05) {
      put(Math.abs(across - 0.25) < 0.02 || Math.abs(y + 0.4) < 0.02 ? [250, 250, 250] : pane)
    }
    if (y > level && y < level + 0.09 && Math.abs(x - corner) < 0.55) put(table)
    if (y > level && y < 0.95 && Math.abs(Math.abs(x - corner) - 0.48) < 0.035) put(table)
  })
}
