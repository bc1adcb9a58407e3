/**
 * Handlers of predictions, of one image or several, and of the model.
 *
 * Source: document 3 §4 C; decisions of document 3, plant errors; issue 7.
 */
import { Effect, Result, Stream } from "effect"
import { Base64 } from "effect/encoding"
import { type HttpServerRequest, HttpServerResponse } from "effect/http"
import { HttpApiBuilder } from "effect/http-api"
import { Predictor } from "#actors/plant-disease/predictor.ts"
import { PlantDiseaseApi } from "#gateway/plant-disease/api.ts"
import type { PredictionMetrics } from "#gateway/plant-disease/metrics.ts"
import { withPixels } from "#gateway/plant-disease/pixel-budget.ts"
import {
  failureOf,
  type ImagePrediction,
  predictImage,
  record,
} from "#gateway/plant-disease/prediction.ts"
import {
  optionsOf,
  type PredictionOptions,
  type PredictionQuery,
} from "#gateway/plant-disease/query.ts"
import { respond } from "#gateway/plant-disease/response.ts"
import { formReader, type ReadForm, type Upload } from "#gateway/plant-disease/upload.ts"
import { BadForm } from "#schemas/plant-disease/rejection.ts"
import type { BatchItem, Prediction } from "#schemas/plant-disease/response.ts"
import type { Settings } from "#schemas/settings.ts"

type Request = HttpServerRequest.HttpServerRequest

export interface PredictingOptions {
  readonly plant: Settings["plant"]
  /** Maximum number of bytes of all arriving images; tests set less. */
  readonly held_bytes_max?: number
  readonly metrics: PredictionMetrics
}

interface Parts extends Pick<PredictingOptions, "plant" | "metrics"> {
  readonly read: ReadForm
}

const one_image = "The form must have exactly one image, as a file in the field 'file'."

const timing = ({ predicted }: ImagePrediction) => ({
  "server-timing": `predict;dur=${predicted.milliseconds.toFixed(1)}`,
})

/** Reads the single image of the form. */
const imageOf = Effect.fnUntraced(function* ({ read, plant }: Parts, request: Request) {
  const limits = { files_max: 1, image_bytes_max: plant.image_bytes_max, wrong_number: one_image }
  const [upload] = yield* Stream.runCollect(yield* read(request, limits))
  if (upload === undefined) return yield* new BadForm({ error: one_image })
  return upload.refusal === undefined ? upload.bytes : yield* upload.refusal
})

const dataUrl = (png: Uint8Array) => `data:image/png;base64,${Base64.encode(png)}`

/** Predicts the class, with its heat map if the query requests one. */
const explained = Effect.fnUntraced(function* (
  image: Uint8Array,
  options: PredictionOptions,
  metrics: PredictionMetrics,
) {
  const { explain } = yield* Predictor
  const copy = options.heatmap === undefined ? undefined : image.slice()
  const answer = yield* predictImage(image, options.top_k ?? 1, metrics)
  const png =
    copy === undefined
      ? undefined
      : yield* withPixels(copy, (image) => explain(image, answer.best.index))
  return { answer, png }
})

const predict = Effect.fnUntraced(function* (
  parts: Parts,
  request: Request,
  query: PredictionQuery,
) {
  const options = optionsOf(query, request.headers.accept)
  if (typeof options === "string") return yield* new BadForm({ error: options })
  const image = yield* imageOf(parts, request)
  const { answer, png } = yield* explained(image, options, parts.metrics)
  yield* record([answer.fact])
  const headers = timing(answer)
  if (png !== undefined && options.heatmap === "png") {
    return HttpServerResponse.uint8Array(png, { contentType: "image/png", headers })
  }
  const body: Prediction = {
    prediction: answer.best.class,
    ...(options.top_k !== undefined && {
      predictions: answer.likely.map(({ index: _, ...likely }) => likely),
    }),
    ...(png !== undefined && { heatmap: dataUrl(png), auto_orient: parts.plant.auto_orient }),
  }
  return HttpServerResponse.jsonUnsafe(body, { headers })
})

/** Predicts one image of a batch. A failure does not affect the others. */
const ofBatch = Effect.fnUntraced(function* (
  { name, bytes, refusal }: Upload,
  metrics: PredictionMetrics,
) {
  if (refusal !== undefined) return { row: { name, error: refusal.error } }
  const exit = yield* Effect.result(predictImage(bytes, 1, metrics))
  if (Result.isSuccess(exit)) {
    const { best, fact } = exit.success
    return { row: { name, prediction: best.class }, fact }
  }
  return { row: { name, error: failureOf(exit.failure).error } }
})

/** Predicts images while the form arrives; facts are recorded once all are predicted. */
const batch = Effect.fnUntraced(function* ({ read, plant, metrics }: Parts, request: Request) {
  const { batch_images_max: files_max, image_bytes_max } = plant
  const wrong_number = `The form must have 1 to ${files_max} images, as files in the field 'file'.`
  const files = yield* read(request, { files_max, image_bytes_max, wrong_number })
  const all = yield* Stream.runCollect(
    Stream.mapEffect(files, (file) => ofBatch(file, metrics), { concurrency: plant.batch_max }),
  )
  yield* record(all.flatMap(({ fact }) => (fact === undefined ? [] : [fact])))
  const predictions: ReadonlyArray<BatchItem> = all.map(({ row }) => row)
  return HttpServerResponse.jsonUnsafe({ predictions })
})

/** The handlers of PlantDiseaseApi. */
export const predicting = ({ plant, held_bytes_max, metrics }: PredictingOptions) =>
  HttpApiBuilder.group(PlantDiseaseApi, "plants", (handlers) => {
    const parts: Parts = { plant, metrics, read: formReader(held_bytes_max) }
    return handlers
      .handleRaw("predict", ({ request, query }) =>
        Effect.scoped(respond(predict(parts, request, query))),
      )
      .handleRaw("batch", ({ request }) => Effect.scoped(respond(batch(parts, request))))
      .handleRaw("model", () =>
        respond(Effect.map(Predictor, ({ model }) => HttpServerResponse.jsonUnsafe(model))),
      )
  })
