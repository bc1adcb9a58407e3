/**
 * The predictor on ONNX Runtime, over the thread pool of `#predictor`. Rejects images when the
 * queue is full.
 *
 * Source: document 3 §1 and §7 C; decisions, plant model and errors; decision 0102.
 */
import { statSync } from "node:fs"
import { availableParallelism } from "node:os"
import { Clock, Effect, Layer } from "effect"
import {
  Busy,
  InferenceFailed,
  type Predicted,
  Predictor,
  TooLarge,
  WrongType,
} from "#actors/plant-disease/predictor.ts"
import { callPool, prepareAndInfer } from "#adapters/plant-disease/pool-effects.ts"
import { ModelUnusable } from "#models"
import {
  end_ms_max,
  type Network,
  type Pool,
  type PredictedImage,
  type PreparedImage,
  predictorPool,
  type Rows,
  squares,
  type Threads,
  tensor_length,
  thread_program,
  typeOf,
} from "#predictor"
import { StopDeadline } from "#processes"
import { causeText } from "#schemas/cause-text.ts"
import type { ModelInfo } from "#schemas/plant-disease/model.ts"
import type { Settings } from "#schemas/settings.ts"

export interface PredictorOptions {
  /** The result of `openModel`. */
  readonly model: Network & { readonly info: Omit<ModelInfo, "loaded_at"> }
  readonly settings: Settings["plant"]
  /** Delays the start of all threads but the first. */
  readonly others?: Promise<void>
  /** Another program for the threads, for tests. */
  readonly program?: URL
}

/**
 * Larger networks get one session for all cores, as each session copies the weights. Decision 0102.
 */
const small_network_bytes_max = 32 * 2 ** 20
/** Concurrent explanations: each takes as long as 50 images. */
const explains_max = 4
/** The largest Retry-After for a full queue. */
const retry_s_max = 30
/** The weight of the last image in the moving average of the time per image. */
const smoothing = 0.1

/** The threads for a network of this size. */
export const threadsFor = (network_bytes: number, workers: number): Threads => {
  const cores = workers === 0 ? availableParallelism() : workers
  return network_bytes <= small_network_bytes_max
    ? { sessions: cores, session_threads: 1, preparers: 0 }
    : { sessions: 1, session_threads: cores, preparers: cores }
}

/** Ready once the first thread has run the network. Its threads stop with the scope. */
export const predictorOnnx = (options: PredictorOptions): Layer.Layer<Predictor, ModelUnusable> =>
  Layer.effect(Predictor, predictor(options))

const predictor = Effect.fnUntraced(function* (options: PredictorOptions) {
  const { model, settings } = options
  const pool = yield* openPool(options)
  const loaded_at = new Date(yield* Clock.currentTimeMillis).toISOString()
  const { admit, busy, recordTime } = admission(pool, settings)
  const { batch_max, queue_max } = settings
  let explanations = 0

  const toPrediction = (
    prepared: PreparedImage | PredictedImage,
    probabilities: Float32Array,
  ): Predicted => {
    const { width, height, sha256, began_ms } = prepared
    const milliseconds = performance.now() - began_ms
    recordTime(milliseconds)
    return { probabilities, width, height, sha256, milliseconds }
  }
  const predict = (image: Uint8Array) =>
    Effect.suspend(() => {
      const rejection = admit(image)
      if (rejection !== undefined) return Effect.fail(rejection)
      return callPool<Predicted>((callback) => prepareAndInfer(pool, image, toPrediction, callback))
    })
  const explain = (image: Uint8Array, class_index?: number) =>
    Effect.suspend(() => {
      const rejection = explanations >= explains_max ? busy() : admit(image)
      if (rejection !== undefined) return Effect.fail(rejection)
      explanations++
      const done = Effect.sync(() => void explanations--)
      return Effect.ensuring(explainImage(pool, batch_max, image, class_index), done)
    })
  const infer = (tensors: Float32Array, count: number) =>
    Effect.suspend((): Effect.Effect<Float32Array, Busy | InferenceFailed> => {
      if (tensors.length !== count * tensor_length) return Effect.fail(wrong_length)
      return pool.waiting() + count > queue_max ? Effect.fail(busy()) : inferAll(pool, tensors)
    })
  return Predictor.of({
    model: { ...model.info, loaded_at },
    predict,
    explain,
    infer,
    load: Effect.sync(() => ({ waiting: pool.waiting(), running: pool.running() })),
    batches: Effect.sync(() => [...pool.batches]),
  })
})

/** Checks an image and the queue, and estimates when to retry. */
const admission = (pool: Pool, { image_bytes_max, queue_max }: Settings["plant"]) => {
  /** The moving average of the predictor's time per image. */
  let image_ms = 0
  const busy = () => {
    const wait_s = Math.ceil((pool.waiting() * image_ms) / 1000)
    const retry_after_seconds = Math.min(Math.max(wait_s, 1), retry_s_max)
    return new Busy({ detail: "Too many images are waiting.", retry_after_seconds })
  }
  return {
    busy,
    admit: (image: Uint8Array) => {
      if (image.length > image_bytes_max) {
        const detail = `It has ${image.length} bytes; the maximum is ${image_bytes_max}.`
        return new TooLarge({ detail })
      }
      if (typeOf(image) === undefined) return new WrongType({ detail: unsupported_type })
      return pool.waiting() >= queue_max ? busy() : undefined
    },
    recordTime: (milliseconds: number) => {
      const share = milliseconds / Math.max(1, pool.running())
      image_ms += (image_ms === 0 ? 1 : smoothing) * (share - image_ms)
    },
  }
}

/** Infers all tensors and concatenates the rows. */
const inferAll = (pool: Pool, tensors: Float32Array) => {
  const starts = Array.from({ length: tensors.length / tensor_length }, (_, n) => n * tensor_length)
  return Effect.forEach(
    starts,
    (from) => {
      const own = tensors.slice(from, from + tensor_length)
      return callPool<Float32Array>((callback) => pool.infer(own, callback))
    },
    { concurrency: "unbounded" },
  ).pipe(
    Effect.map((rows) => Float32Array.from(rows.flatMap((row) => [...row]))),
    Effect.mapError((failure) => new InferenceFailed({ detail: failure.detail })),
  )
}

/**
 * A heatmap of the image, as a PNG of 224 by 224: the drop of the class's probability for each
 * occluded square. Occluded squares wait until no image is queued. Transfers the image.
 */
const explainImage = Effect.fnUntraced(function* (
  pool: Pool,
  batch_max: number,
  image: Uint8Array,
  class_index?: number,
) {
  const { rgb } = yield* callPool<PreparedImage>((callback) => pool.prepare(image, callback))
  const probabilities = yield* callPool<Float32Array>((callback) =>
    pool.infer(rgb.slice(), callback),
  )
  const index = class_index ?? probabilities.indexOf(Math.max(...probabilities))
  const probability = probabilities[index]
  if (probability === undefined) return yield* inferenceFailed(`The class ${index} does not exist.`)
  const starts = Array.from({ length: Math.ceil(squares / batch_max) }, (_, n) => n * batch_max)
  const rows = yield* Effect.forEach(
    starts,
    (from) =>
      callPool<Rows>((callback) =>
        pool.occlude(rgb, from, Math.min(from + batch_max, squares), callback),
      ),
    { concurrency: "unbounded" },
  )
  const drops = rows
    .flat()
    .map((row) => (typeof row === "string" ? row : probability - (row[index] ?? 0)))
  const error = drops.find((drop) => typeof drop === "string")
  if (error !== undefined) return yield* inferenceFailed(String(error))
  const heatmap = Float32Array.from(drops, Number)
  return yield* callPool<Uint8Array>((callback) => pool.renderHeatmap(rgb, heatmap, callback))
})

const inferenceFailed = (detail: string) => Effect.fail(new InferenceFailed({ detail }))

const unsupported_type = "It is neither a JPEG nor a PNG."

const wrong_length = new InferenceFailed({ detail: "The tensors have the wrong length." })

/** Starts the pool and waits for its first thread. */
const openPool = Effect.fnUntraced(function* (options: PredictorOptions) {
  const { model, settings, others, program } = options
  const { onnx_path, input, output, info } = model
  const run = Effect.runForkWith(yield* Effect.context())
  // Loaded here so that the native code stays loaded when a thread exits. Sharp's is never unloaded
  // anyway, because it asks the linker not to.
  yield* Effect.promise(() => import("#onnx-runtime"))
  const bytes = yield* Effect.try({
    try: () => Math.max(statSync(onnx_path).size, info.bytes, (info.parameters ?? 0) * 4),
    catch: (error) => unusable(info.name, error),
  })
  const { batch_max, resize, auto_orient, image_pixels_max } = settings
  const own_scale = input.has_rescaling ? "0..255" : "0..1"
  const scale = settings.scale === "auto" ? own_scale : settings.scale
  const pool = yield* Effect.acquireRelease(
    Effect.sync(() =>
      predictorPool({
        network: { onnx_path, input, output },
        threads: threadsFor(bytes, settings.workers),
        others,
        program: program ?? thread_program,
        onLost: (why) => run(Effect.logError(`A predictor thread exited: ${why}`)),
        pixels_max: image_pixels_max,
        batch_max,
        resize,
        scale,
        auto_orient,
      }),
    ),
    Effect.fnUntraced(function* (pool_to_end) {
      const wait_ms = yield* (yield* StopDeadline).part(end_ms_max)
      yield* Effect.promise(() => pool_to_end.end(wait_ms))
    }),
  )
  yield* Effect.tryPromise({
    try: () => pool.started,
    catch: (error) => unusable(info.name, error),
  })
  return pool
})

const unusable = (name: string, error: unknown) => {
  const [line = ""] = causeText(error).split("\n", 1)
  return new ModelUnusable({ detail: `The model ${name} cannot be run: ${line}` })
}
