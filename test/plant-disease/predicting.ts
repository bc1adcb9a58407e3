/** A separate predictor for each test, and images that it recognizes. */
import { join } from "node:path"
import { Effect, type Exit, References } from "effect"
import sharp from "sharp"
import { type PredictFailure, Predictor } from "#actors/plant-disease/predictor.ts"
import { predictorOnnx } from "#adapters/plant-disease/predictor-onnx.ts"
import type { Settings } from "#schemas/settings.ts"
import { colourNetwork, plantSettings, scratch, type Variant } from "./colour-network.ts"

export const side = 224
export const length = side * side * 3
export const rgb = { red: [250, 20, 20], green: [20, 250, 20], blue: [20, 20, 250] } as const
export type Colour = keyof typeof rgb
export const names = ["red", "green", "blue"] as const

export const imageOf = (colour: Colour, width = 60, height = 40) => {
  const [r, g, b] = rgb[colour]
  return sharp({ create: { width, height, channels: 3, background: { r, g, b } } })
}
export const pngs = {
  red: await imageOf("red").png().toBuffer(),
  green: await imageOf("green").png().toBuffer(),
  blue: await imageOf("blue").png().toBuffer(),
}
/** A fresh copy each time, because the predictor takes ownership of the image. */
export const png = (colour: Colour) => Uint8Array.from(pngs[colour])

export const likeliest = (probabilities: Float32Array) =>
  names[probabilities.indexOf(Math.max(...probabilities))]

export interface Given {
  readonly network?: Variant
  readonly settings?: Partial<Settings["plant"]>
  readonly program?: URL
}

/** Runs `body` with a predictor of its own. */
export const predicting = <A, E>(
  run: (predictor: Predictor["Service"]) => Effect.Effect<A, E>,
  { network = {}, settings = {}, program }: Given = {},
) =>
  Effect.gen(function* () {
    const folder = yield* scratch
    const model = colourNetwork(join(folder, "colours.onnx"), network)
    const options = { model, settings: plantSettings(settings) }
    const layer = predictorOnnx(program === undefined ? options : { ...options, program })
    return yield* Effect.provide(Effect.flatMap(Effect.service(Predictor), run), layer)
  }).pipe(Effect.scoped, Effect.provideService(References.MinimumLogLevel, "None"))

export const failureOf = <A, E>(effect: Effect.Effect<A, E>) => Effect.flip(effect)

export const failuresOf = <A>(exit: Exit.Exit<A, PredictFailure>) =>
  exit._tag === "Failure"
    ? exit.cause.reasons.flatMap((reason) => (reason._tag === "Fail" ? [reason.error] : []))
    : []
