/** Plant disease prediction in this process: its network, its spool, its API. */
import { join } from "node:path"
import { Context, Deferred, Effect, Layer } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { predictions } from "#actors/plant-disease/prediction.ts"
import { PredictionSpool } from "#actors/plant-disease/prediction-spool.ts"
import { Predictor } from "#actors/plant-disease/predictor.ts"
import { PixelsInFlight, pixelBudget } from "#gateway/budget.ts"
import { PlantDiseaseApi } from "#gateway/plant-disease/api.ts"
import { inferring } from "#gateway/plant-disease/inference.ts"
import { predictionMetrics } from "#gateway/plant-disease/metrics.ts"
import { predicting } from "#gateway/plant-disease/predict.ts"
import { appOf } from "#gateway/routes.ts"
import { demo_model, type ModelUnusable, openModel } from "#models"
import type { ModelInfo } from "#schemas/plant-disease/model.ts"
import type { Settings } from "#schemas/settings.ts"
import { openSpool } from "#server/spool.ts"

export interface PlantDiseaseOptions {
  readonly settings: Settings
  readonly node_id: string
  readonly opening: Opening
}

/** Opens the network and starts its thread. */
const openPredictor = Effect.fnUntraced(function* (
  { plant, data }: Settings,
  others: Promise<void>,
) {
  const { predictorOnnx } = yield* Effect.promise(
    () => import("#adapters/plant-disease/predictor-onnx.ts"),
  )
  const model = yield* openModel({
    model_path: plant.model === "" ? demo_model : plant.model,
    classes_path: plant.classes,
    cache_dir: join(data.dir, "plant-models"),
  })
  return yield* Layer.build(predictorOnnx({ model, settings: plant, others }))
})

const logModel = ({ name, format, sha256, classes, is_demo }: ModelInfo) => {
  const kind = is_demo ? "demo model, which recognizes drawn leaves only" : "model"
  const what = `${name} (${format}), ${classes.length} classes, sha256 ${sha256}`
  return Effect.logDebug(`Plant disease uses the ${kind}: ${what}`)
}

/** A note in the health check: a demo must not be mistaken for agronomy. */
const demo_note = "uses the demo model: set plant.model to your own model"

/** A network that is being opened, or the error; resolve `serves` once the process serves. */
export const newOpening = Effect.map(
  Deferred.make<Context.Context<Predictor>, ModelUnusable>(),
  (network) => ({ network, serves: Promise.withResolvers<void>() }),
)
export type Opening = Effect.Success<typeof newOpening>

/**
 * Opens the network while the bus starts: each takes as long as all other services together. One of
 * its threads is enough to serve; the others start when the cores are free.
 */
export const opens = (settings: Settings, { network, serves }: Opening) =>
  Layer.effectDiscard(
    Effect.forkScoped(Deferred.into(openPredictor(settings, serves.promise), network), {
      startImmediately: true,
    }),
  )

/**
 * The service to mount, its metrics, and an effect to run once the process serves; the last two are
 * empty if it could not start. Mounting waits until the network has opened or failed.
 */
export const plantDisease = ({ settings, node_id, opening }: PlantDiseaseOptions) => {
  const metrics = predictionMetrics()
  const { plant } = settings
  const layer = HttpApiBuilder.layer(PlantDiseaseApi).pipe(
    Layer.provide([predicting({ plant, metrics }), inferring({ plant, metrics })]),
  )
  const start = Effect.gen(function* () {
    const built = yield* Deferred.await(opening.network)
    const spool = yield* openSpool(settings, node_id, predictions)
    const known = built.pipe(
      Context.add(PredictionSpool, spool),
      Context.add(PixelsInFlight, pixelBudget(plant.image_pixels_max)),
    )
    return yield* appOf(layer, known)
  })
  const predictor = Effect.map(Deferred.await(opening.network), (built) =>
    Context.get(built, Predictor),
  )
  const note = plant.model === "" ? demo_note : undefined
  return {
    service: {
      name: "plant-disease",
      api: PlantDiseaseApi,
      routes: start,
      note: Effect.succeed(note),
    },
    metrics: Effect.catch(Effect.flatMap(predictor, metrics.text), () => Effect.succeed("")),
    serves: Effect.andThen(
      Effect.sync(opening.serves.resolve),
      Effect.ignore(Effect.flatMap(predictor, ({ model }) => logModel(model))),
    ),
  }
}
