/**
 * The predictor on ONNX Runtime: images are decoded, resized and predicted in threads, several
 * together when they wait together; more than the queue holds are turned away.
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
import { explanation } from "#adapters/plant-disease/explanation.ts"
import { asked, chained } from "#adapters/plant-disease/pool-effects.ts"
import { ModelUnusable } from "#models"
import type { Network } from "#predictor"
import {
  type Begun,
  end_ms_max,
  type Pool,
  plantPool,
  type Ran,
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
  /** What `openModel` made of the user's file. */
  readonly model: Network & { readonly info: Omit<ModelInfo, "loaded_at"> }
  readonly settings: Settings["plant"]
  /** When all threads but the first begin; absent: when the first can work. */
  readonly others?: Promise<void>
  /** The threads' program; tests have their own. */
  readonly program?: URL
}

/** Above it one session serves all cores: each has its own copy of the weights. Decision 0102. */
const small_network_bytes_max = 32 * 2 ** 20
/** Heat maps in the making: each takes as long as 50 images. */
const explains_max = 4
/** What is told to who finds the queue full, at most. */
const retry_s_max = 30
/** How much the last image counts in the mean time of one. */
const smoothing = 0.1

/** Which threads a network of so many bytes has. */
export const threadsFor = (network_bytes: number, workers: number): Threads => {
  const cores = workers === 0 ? availableParallelism() : workers
  return network_bytes <= small_network_bytes_max
    ? { sessions: cores, session_threads: 1, preparers: 0 }
    : { sessions: 1, session_threads: cores, preparers: cores }
}

/** Ready once a thread has run the network; the others begin later. Ends when the scope does. */
export const predictorOnnx = (options: PredictorOptions): Layer.Layer<Predictor, ModelUnusable> =>
  Layer.effect(Predictor, predictor(options))

const predictor = Effect.fnUntraced(function* (options: PredictorOptions) {
  const { model, settings } = options
  const pool = yield* opened(options)
  const loaded_at = new Date(yield* Clock.currentTimeMillis).toISOString()
  const { admit, busy, took } = admission(pool, settings)
  const { batch_max, queue_max } = settings
  let explaining = 0

  const predictedOf = (begun: Begun | Ran, probabilities: Float32Array): Predicted => {
    const { width, height, sha256, began_ms } = begun
    const milliseconds = performance.now() - began_ms
    took(milliseconds)
    return { probabilities, width, height, sha256, milliseconds }
  }
  const predict = (image: Uint8Array) =>
    Effect.suspend(() => {
      const refused = admit(image)
      if (refused !== undefined) return Effect.fail(refused)
      return asked<Predicted>((told) => chained(pool, image, predictedOf, told))
    })
  const explain = (image: Uint8Array, class_index?: number) =>
    Effect.suspend(() => {
      const refused = explaining >= explains_max ? busy() : admit(image)
      if (refused !== undefined) return Effect.fail(refused)
      explaining++
      const done = Effect.sync(() => void explaining--)
      return Effect.ensuring(explanation(pool, batch_max, image, class_index), done)
    })
  const infer = (tensors: Float32Array, count: number) =>
    Effect.suspend((): Effect.Effect<Float32Array, Busy | InferenceFailed> => {
      if (tensors.length !== count * tensor_length) return Effect.fail(wrong_size)
      return pool.waiting() + count > queue_max ? Effect.fail(busy()) : inferred(pool, tensors)
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

/** Who is let in, and when to come again who is not. */
const admission = (pool: Pool, { image_bytes_max, queue_max }: Settings["plant"]) => {
  /** What an image takes of the whole predictor's time, as the last ones did. */
  let image_ms = 0
  const busy = () => {
    const wait_s = Math.ceil((pool.waiting() * image_ms) / 1000)
    const retry_after_seconds = Math.min(Math.max(wait_s, 1), retry_s_max)
    return new Busy({ detail: "Too many images wait already.", retry_after_seconds })
  }
  return {
    busy,
    admit: (image: Uint8Array) => {
      if (image.length > image_bytes_max) {
        const detail = `It has ${image.length} bytes; at most ${image_bytes_max} are taken.`
        return new TooLarge({ detail })
      }
      if (typeOf(image) === undefined) return new WrongType({ detail: no_image })
      return pool.waiting() >= queue_max ? busy() : undefined
    },
    took: (milliseconds: number) => {
      const share = milliseconds / Math.max(1, pool.running())
      image_ms += (image_ms === 0 ? 1 : smoothing) * (share - image_ms)
    },
  }
}

/** The rows of all tensors, one after the other. */
const inferred = (pool: Pool, tensors: Float32Array) => {
  const starts = Array.from({ length: tensors.length / tensor_length }, (_, n) => n * tensor_length)
  return Effect.forEach(
    starts,
    (from) => {
      const own = tensors.slice(from, from + tensor_length)
      return asked<Float32Array>((told) => pool.infer(own, told))
    },
    { concurrency: "unbounded" },
  ).pipe(
    Effect.map((rows) => Float32Array.from(rows.flatMap((row) => [...row]))),
    Effect.mapError((failure) => new InferenceFailed({ detail: failure.detail })),
  )
}

const no_image = "It is no JPEG and no PNG, by its first bytes."

const wrong_size = new InferenceFailed({ detail: "The tensors have another size." })

/** The pool, once one of its threads can work. */
const opened = Effect.fnUntraced(function* (options: PredictorOptions) {
  const { model, settings, others, program } = options
  const { onnx_path, input, output, info } = model
  const run = Effect.runForkWith(yield* Effect.context())
  // Native code stays loaded for as long as the process, not only as a thread that uses it; sharp's
  // is never unloaded anyway, as it asks of the linker.
  yield* Effect.promise(() => import("onnxruntime-node"))
  const bytes = yield* Effect.try({
    try: () => Math.max(statSync(onnx_path).size, info.bytes, (info.parameters ?? 0) * 4),
    catch: (error) => unusable(info.name, error),
  })
  const { batch_max, resize, auto_orient, image_pixels_max } = settings
  const own_scale = input.has_rescaling ? "0..255" : "0..1"
  const scale = settings.scale === "auto" ? own_scale : settings.scale
  const pool = yield* Effect.acquireRelease(
    Effect.sync(() =>
      plantPool({
        network: { onnx_path, input, output },
        threads: threadsFor(bytes, settings.workers),
        others,
        program: program ?? thread_program,
        onLost: (why) => run(Effect.logError(`A thread of the predictor ended: ${why}`)),
        pixels_max: image_pixels_max,
        batch_max,
        resize,
        scale,
        auto_orient,
      }),
    ),
    Effect.fnUntraced(function* (made) {
      const wait_ms = yield* (yield* StopDeadline).part(end_ms_max)
      yield* Effect.promise(() => made.end(wait_ms))
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
