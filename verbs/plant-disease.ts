/** Plant disease prediction in this process: its network, its spool, its paths. */
import { join } from "node:path"
import { Context, Effect, Fiber, Layer } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { predictions } from "#actors/plant-disease/prediction.ts"
import { PredictionSpool } from "#actors/plant-disease/prediction-spool.ts"
import { Predictor } from "#actors/plant-disease/predictor.ts"
import { demo_model } from "#adapters/plant-demo.ts"
import { PlantDiseaseApi } from "#gateway/plant-disease/api.ts"
import { predictionMetrics } from "#gateway/plant-disease/metrics.ts"
import { predicting } from "#gateway/plant-disease/predict.ts"
import { appOf } from "#gateway/routes.ts"
import type { Settings } from "#schemas/settings.ts"
import { spooled } from "#verbs/spooled.ts"

export interface PlantDiseaseOptions {
  readonly settings: Settings
  readonly node_id: string
}

/** Opens the network, and has each thread run it; the libraries are loaded by who serves alone. */
const opened = Effect.fnUntraced(function* ({ plant, data }: Settings) {
  const [{ openModel }, { predictorOnnx }] = yield* Effect.promise(() =>
    Promise.all([import("#adapters/plant-model.ts"), import("#adapters/predictor-onnx.ts")]),
  )
  const model = yield* openModel({
    model_path: plant.model === "" ? demo_model : plant.model,
    classes_path: plant.classes,
    cache_dir: join(data.dir, "plant-models"),
  })
  const built = yield* Layer.build(predictorOnnx({ model, settings: plant }))
  const { name, format, sha256, classes, is_demo } = Context.get(built, Predictor).model
  const what = is_demo ? "demo model, which knows drawn leaves only" : "model"
  yield* Effect.logInfo(
    `Plants are predicted by the ${what}: ${name} (${format}), ${classes.length} classes, sha256 ${sha256}`,
  )
  return built
})

/** Said where somebody looks whether all is well: a demo must not be taken for agronomy. */
const demo_note = "the demo model predicts: set plant.model to your own"

/**
 * To be mounted, and its metrics, which are none where it could not start; it lives as long as the scope. Opening begins at once, beside whatever else starts,
 * and the service is mounted when its network works, or when it is known that it will not.
 */
export const plantDisease = Effect.fnUntraced(function* ({
  settings,
  node_id,
}: PlantDiseaseOptions) {
  const opening = yield* Effect.forkScoped(opened(settings), { startImmediately: true })
  const metrics = predictionMetrics()
  const layer = HttpApiBuilder.layer(PlantDiseaseApi).pipe(
    Layer.provide(predicting({ plant: settings.plant, metrics })),
  )
  const start = Effect.gen(function* () {
    const built = yield* Fiber.join(opening)
    const spool = yield* spooled(settings, node_id, predictions)
    return yield* appOf(layer, Context.add(built, PredictionSpool, spool))
  })
  const text = Fiber.join(opening).pipe(
    Effect.flatMap((built) => metrics.text(Context.get(built, Predictor))),
    Effect.catchCause(() => Effect.succeed("")),
  )
  const note = settings.plant.model === "" ? demo_note : undefined
  return {
    service: {
      name: "plant-disease",
      api: PlantDiseaseApi,
      routes: start,
      note: Effect.succeed(note),
    },
    metrics: text,
  }
})
