/** Predictions behind the gateway, over real HTTP, with a network of three colours. */
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Context, Effect, Layer } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { PredictionSpool } from "#actors/plant-disease/prediction-spool.ts"
import { predictorOnnx } from "#adapters/plant-disease/predictor-onnx.ts"
import { spoolMemory } from "#adapters/spool/memory.ts"
import { PlantDiseaseApi } from "#gateway/plant-disease/api.ts"
import { inferring } from "#gateway/plant-disease/inference.ts"
import { predictionMetrics } from "#gateway/plant-disease/metrics.ts"
import { predicting } from "#gateway/plant-disease/predict.ts"
import { appOf } from "#gateway/routes.ts"
import type { PredictionFact } from "#schemas/plant-disease/prediction.ts"
import type { Settings } from "#schemas/settings.ts"
import { type Given, type Served, startHttp } from "../world/http.ts"
import { colourNetwork, plantSettings, type Variant } from "./colour-network.ts"

export interface Options {
  readonly plant?: Partial<Settings["plant"]>
  readonly network?: Variant
  readonly api?: Given["api"]
  readonly held_bytes_max?: number
}

export interface Predicts extends Served {
  /** Posts a form. */
  readonly post: (form: FormData, path?: string, init?: RequestInit) => Promise<Response>
  /** The facts since the last call. */
  readonly facts: () => Promise<ReadonlyArray<PredictionFact>>
  readonly stop: () => Promise<void>
}

export const startPredicting = async (options: Options = {}): Promise<Predicts> => {
  const { network = {}, api = {}, held_bytes_max } = options
  const folder = mkdtempSync(join(tmpdir(), "almanac-predict-"))
  const model = colourNetwork(join(folder, "colours.onnx"), network)
  const plant = plantSettings(options.plant)
  const spool = await Effect.runPromise(spoolMemory<PredictionFact>())
  const info = { ...model.info, sha256: "c".repeat(64) }
  const known = Effect.gen(function* () {
    const built = yield* Layer.build(predictorOnnx({ model: { ...model, info }, settings: plant }))
    return Context.add(built, PredictionSpool, spool)
  })
  const metrics = predictionMetrics()
  const more = held_bytes_max === undefined ? {} : { held_bytes_max }
  const layer = HttpApiBuilder.layer(PlantDiseaseApi).pipe(
    Layer.provide([predicting({ plant, metrics, ...more }), inferring({ plant, metrics })]),
  )
  const service = {
    name: "plant-disease",
    api: PlantDiseaseApi,
    routes: Effect.flatMap(known, (context) => appOf(layer, context)),
  }
  const served = await startHttp([service], { settings: { plant, api } })
  const facts = Effect.gen(function* () {
    const all = yield* spool.scan(0, 100_000)
    yield* spool.acknowledge(all.at(-1)?.cursor ?? 0)
    return all.map(({ fact }) => fact)
  })
  return {
    ...served,
    post: (form, path = "/predict", init = {}) =>
      served.fetch(path, { ...init, method: "POST", body: form }),
    facts: () => Effect.runPromise(facts),
    stop: async () => {
      await served.stop()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

export interface File {
  readonly bytes: Uint8Array
  readonly name?: string
  readonly type?: string
  readonly field?: string
}

/** A form with these files. */
export const formOf = (...files: ReadonlyArray<File>) => {
  const form = new FormData()
  for (const { bytes, name = "leaf.png", type = "image/png", field = "file" } of files) {
    form.append(field, new Blob([Uint8Array.from(bytes)], { type }), name)
  }
  return form
}

/** The boundary of handwritten forms. */
export const boundary = "x-boundary"
export const form_type = { "content-type": `multipart/form-data; boundary=${boundary}` }

/** One part with the given head. */
export const partOf = (head: string, content: Uint8Array | string) =>
  Buffer.concat([
    Buffer.from(`--${boundary}\r\n${head}\r\n\r\n`),
    Buffer.from(content),
    Buffer.from("\r\n"),
  ])

export const whole = (...parts: ReadonlyArray<Buffer>) =>
  Buffer.concat([...parts, Buffer.from(`--${boundary}--\r\n`)])

export const file_head = 'Content-Disposition: form-data; name="file"; filename="leaf.png"'
