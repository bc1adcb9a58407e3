/**
 * A process that predicts as many images as its argument says, of several sizes and eight at once,
 * and prints its memory in bytes at ten points as JSON.
 */
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Effect } from "effect"
import sharp from "sharp"
import { Predictor } from "#actors/plant-disease/predictor.ts"
import { predictorOnnx } from "#adapters/plant-disease/predictor-onnx.ts"
import { colourNetwork, plantSettings } from "./colour-network.ts"

const places = 10
const in_flight = 8
const count = Number(process.argv[2])
const sizes = [
  [256, 256],
  [64, 900],
  [1024, 768],
  [30, 20],
] as const

const folder = mkdtempSync(join(tmpdir(), "almanac-plant-memory-"))
const model = colourNetwork(join(folder, "colours.onnx"))
const background = { r: 20, g: 200, b: 40 }
const images = await Promise.all(
  sizes.map(async ([width, height], n) => {
    const image = sharp({ create: { width, height, channels: 3, background } })
    return n % 2 === 0 ? image.jpeg().toBuffer() : image.png().toBuffer()
  }),
)
const image = (n: number) => Uint8Array.from(images[n % images.length] ?? [])

const measure = Effect.gen(function* () {
  const predictor = yield* Predictor
  const memory: Array<number> = []
  for (let place = 0; place < places; place++) {
    const some = Array.from({ length: Math.ceil(count / places) }, (_, n) => n)
    yield* Effect.forEach(some, (n) => predictor.predict(image(n)), {
      concurrency: in_flight,
      discard: true,
    })
    memory.push(process.memoryUsage.rss())
  }
  return memory
})

const layer = predictorOnnx({ model, settings: plantSettings() })
console.log(JSON.stringify(await Effect.runPromise(Effect.provide(measure, layer))))
rmSync(folder, { recursive: true })
