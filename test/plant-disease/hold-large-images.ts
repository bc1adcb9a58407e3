/**
 * A process that predicts PNGs of 7000 by 7000, one per thread at a time, and prints its memory in
 * bytes as JSON: before, and when it is idle again.
 */
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Effect } from "effect"
import sharp from "sharp"
import { Predictor } from "#actors/plant-disease/predictor.ts"
import { predictorOnnx } from "#adapters/plant-disease/predictor-onnx.ts"
import { colourNetwork, plantSettings } from "./colour-network.ts"

const workers = 4
const side = 7000
const settle_ms = 1000

const folder = mkdtempSync(join(tmpdir(), "almanac-plant-large-"))
const model = colourNetwork(join(folder, "colours.onnx"))
const background = { r: 20, g: 200, b: 40 }
const png = (pixels: number) =>
  sharp({ create: { width: pixels, height: pixels, channels: 3, background } })
    .png()
    .toBuffer()
const [small, large] = await Promise.all([png(300), png(side)])

const predictAll = (image: Uint8Array) =>
  Effect.flatMap(Predictor, ({ predict }) =>
    Effect.forEach(
      Array.from({ length: workers }),
      () => Effect.suspend(() => predict(Uint8Array.from(image))),
      { concurrency: workers, discard: true },
    ),
  )

const measure = Effect.gen(function* () {
  // Every thread has loaded what it needs.
  for (let n = 0; n < 4; n++) yield* predictAll(small)
  const before = process.memoryUsage.rss()
  yield* predictAll(large)
  yield* Effect.sleep(settle_ms)
  return { before, after: process.memoryUsage.rss() }
})

const layer = predictorOnnx({ model, settings: plantSettings({ workers }) })
console.log(JSON.stringify(await Effect.runPromise(Effect.provide(measure, layer))))
rmSync(folder, { recursive: true })
