/**
 * Handlers of the Open Inference Protocol. Tensors go to the network unchanged, images are
 * processed as by `/predict`. A fact is recorded for each image.
 *
 * Source: issue 7; KServe, "Open Inference Protocol", HTTP/REST.
 */
import { Clock, Effect, Schema } from "effect"
import { type HttpServerRequest, HttpServerResponse } from "effect/http"
import { HttpApiBuilder } from "effect/http-api"
import { Predictor, side } from "#actors/plant-disease/predictor.ts"
import { PlantDiseaseApi } from "#gateway/plant-disease/api.ts"
import {
  type InferenceInput,
  inputOf,
  type output_names,
} from "#gateway/plant-disease/inference-input.ts"
import type { PredictionMetrics } from "#gateway/plant-disease/metrics.ts"
import { factOf, likeliest, predictImage, record } from "#gateway/plant-disease/prediction.ts"
import { type Failure, respond } from "#gateway/plant-disease/response.ts"
import { InferenceRequest, type InferenceResponse } from "#schemas/plant-disease/inference.ts"
import type { PredictionFact } from "#schemas/plant-disease/prediction.ts"
import { BadForm, NoModel } from "#schemas/plant-disease/rejection.ts"
import type { Settings } from "#schemas/settings.ts"

type Request = HttpServerRequest.HttpServerRequest

export interface InferringOptions {
  readonly plant: Settings["plant"]
  readonly metrics: PredictionMetrics
}

const tensor_length = side * side * 3
const no_binary =
  "Binary tensor data is not supported. Send JSON with numbers, or images in base64."

/** Finds the model of this name; fails with 404. */
const modelOf = Effect.fnUntraced(function* (name: string) {
  const { model } = yield* Predictor
  if (name === model.name) return model
  return yield* new NoModel({ error: `No model is named '${name}'. The model is '${model.name}'.` })
})

const metadata = Effect.fnUntraced(function* (name: string) {
  const { classes, sha256 } = yield* modelOf(name)
  return {
    name,
    versions: [sha256],
    platform: "onnx_onnxv1",
    inputs: [{ name: "image", datatype: "FP32", shape: [-1, side, side, 3] }],
    outputs: [
      { name: "probabilities", datatype: "FP32", shape: [-1, classes.length] },
      { name: "class", datatype: "BYTES", shape: [-1] },
    ],
  }
})

const decodeRequest = Schema.decodeUnknownEffect(InferenceRequest)

/** Reads the body, which must be JSON. */
const requestOf = Effect.fnUntraced(function* (request: Request) {
  const { headers } = request
  const is_binary =
    headers["inference-header-content-length"] !== undefined ||
    headers["content-type"]?.startsWith("application/octet-stream") === true
  if (is_binary) return yield* new BadForm({ error: no_binary })
  const json = yield* Effect.mapError(request.json, () => {
    return new BadForm({ error: "The request body is not JSON, or is incomplete." })
  })
  return yield* Effect.mapError(decodeRequest(json), ({ message }) => {
    return new BadForm({ error: `The request body does not follow the protocol: ${message}` })
  })
})

interface Outcome {
  readonly rows: ReadonlyArray<Float32Array>
  readonly facts: ReadonlyArray<PredictionFact>
}

const ofImages = Effect.fnUntraced(function* (
  images: ReadonlyArray<Uint8Array>,
  { plant, metrics }: InferringOptions,
) {
  const all = yield* Effect.forEach(images, (image) => predictImage(image, 1, metrics), {
    concurrency: plant.batch_max,
  })
  const outcome: Outcome = {
    rows: all.map(({ predicted }) => predicted.probabilities),
    facts: all.map(({ fact }) => fact),
  }
  return outcome
})

const hex = (bytes: ArrayBuffer) =>
  Array.from(new Uint8Array(bytes), (byte) => byte.toString(16).padStart(2, "0")).join("")

/**
 * Predicts tensors. There is no file, so the fact has the hash of the numbers, as 32-bit floats.
 */
const ofTensors = Effect.fnUntraced(function* (
  tensors: Float32Array<ArrayBuffer>,
  count: number,
  { metrics }: InferringOptions,
) {
  const { infer, model } = yield* Predictor
  const pieces = Array.from({ length: count }, (_, n) => {
    return tensors.slice(n * tensor_length, (n + 1) * tensor_length)
  })
  // Hashed outside the main thread.
  const hashes = yield* Effect.forEach(pieces, (piece) => {
    return Effect.promise(() => crypto.subtle.digest("SHA-256", piece))
  })
  const began_ms = yield* Clock.currentTimeMillis
  const all = yield* Effect.tapError(infer(tensors, count), ({ _tag }) =>
    Effect.sync(() => metrics.count(_tag)),
  )
  const milliseconds = Math.max(0, (yield* Clock.currentTimeMillis) - began_ms) / count
  const length = all.length / count
  const rows = pieces.map((_, n) => all.subarray(n * length, (n + 1) * length))
  const facts = yield* Effect.forEach(rows, (row, n) => {
    metrics.count("predicted")
    metrics.took(milliseconds)
    const [best = { class: "", probability: 0 }] = likeliest(row, model.classes, 1)
    const image_sha256 = hex(hashes[n] ?? new ArrayBuffer(0))
    return factOf(began_ms, { best, image_sha256, image_bytes: tensor_length * 4, milliseconds })
  })
  const outcome: Outcome = { rows, facts }
  return outcome
})

const outcomeOf = (input: InferenceInput, options: InferringOptions) =>
  input.kind === "images"
    ? ofImages(input.images, options)
    : ofTensors(input.tensors, input.count, options)

const infer = Effect.fnUntraced(function* (
  name: string,
  request: Request,
  options: InferringOptions,
) {
  const model = yield* modelOf(name)
  const body = yield* requestOf(request)
  const input = inputOf(body, options.plant)
  if (typeof input === "string") return yield* new BadForm({ error: input })
  const { rows, facts } = yield* outcomeOf(input, options)
  yield* record(facts)
  const shape = [rows.length, model.classes.length]
  const probabilities = rows.flatMap((row) => [...row])
  const classes = facts.map((fact) => fact.class)
  const outputs: Record<(typeof output_names)[number], InferenceResponse["outputs"][number]> = {
    probabilities: { name: "probabilities", datatype: "FP32", shape, data: probabilities },
    class: { name: "class", datatype: "BYTES", shape: [rows.length], data: classes },
  }
  const answer: InferenceResponse = {
    model_name: model.name,
    model_version: model.sha256,
    ...(body.id !== undefined && { id: body.id }),
    outputs: input.outputs.map((output) => outputs[output]),
  }
  return HttpServerResponse.jsonUnsafe(answer)
})

const json = <A, R>(answer: Effect.Effect<A, Failure, R>) =>
  respond(Effect.map(answer, (body) => HttpServerResponse.jsonUnsafe(body)))

/** The handlers of the inference protocol. */
export const inferring = (options: InferringOptions) =>
  HttpApiBuilder.group(PlantDiseaseApi, "inference", (handlers) =>
    handlers
      .handleRaw("server", () =>
        json(Effect.succeed({ name: "almanac", version: "1", extensions: [] })),
      )
      .handleRaw("inference_live", () => json(Effect.succeed({ live: true })))
      .handleRaw("inference_ready", () => json(Effect.succeed({ ready: true })))
      .handleRaw("metadata", ({ params }) => json(metadata(params.name)))
      .handleRaw("model_ready", ({ params }) =>
        json(Effect.as(modelOf(params.name), { name: params.name, ready: true })),
      )
      .handleRaw("infer", ({ request, params }) => respond(infer(params.name, request, options))),
  )
