/** Plant disease prediction in this process: its network, its spool, its paths. */
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
import { spooled } from "#server/spooled.ts"

export interface PlantDiseaseOptions {
  readonly settings: Settings
  readonly node_id: string
  readonly opening: Opening
}

/** Opens the network, and has a thread run it. */
const opened = Effect.fnUntraced(function* ({ plant, data }: Settings, others: Promise<void>) {
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

const said = ({ name, format, sha256, classes, is_demo }: ModelInfo) => {
  const by = is_demo ? "demo model, which knows drawn leaves only" : "model"
  const what = `${name} (${format}), ${classes.length} classes, sha256 ${sha256}`
  return Effect.logInfo(`Plants are predicted by the ${by}: ${what}`)
}

/** Said where somebody looks whether all is well: a demo must not be taken for agronomy. */
const demo_note = "the demo model predicts: set plant.model to your own"

/** A network that is being opened, or why it cannot be; `serves` is told once the process does. */
export const newOpening = Effect.map(
  Deferred.make<Context.Context<Predictor>, ModelUnusable>(),
  (network) => ({ network, serves: Promise.withResolvers<void>() }),
)
export type Opening = Effect.Success<typeof newOpening>

/**
 * Opens the network while the bus starts: either takes as long as all services beside it. One of
 * its threads is enough to serve; the others take the cores when nothing else waits for them.
 */
export const opens = (settings: Settings, { network, serves }: Opening) =>
  Layer.effectDiscard(
    Effect.forkScoped(Deferred.into(opened(settings, serves.promise), network), {
      startImmediately: true,
    }),
  )

/**
 * To be mounted, with its metrics and what is to be done once the process serves: both are
 * nothing where it could not start. It is mounted when its network works, or is known not to.
 */
export const plantDisease = ({ settings, node_id, opening }: PlantDiseaseOptions) => {
  const metrics = predictionMetrics()
  const { plant } = settings
  const layer = HttpApiBuilder.layer(PlantDiseaseApi).pipe(
    Layer.provide([predicting({ plant, metrics }), inferring({ plant, metrics })]),
  )
  const start = Effect.gen(function* () {
    const built = yield* Deferred.await(opening.network)
    const spool = yield* spooled(settings, node_id, predictions)
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
      Effect.ignore(Effect.flatMap(predictor, ({ model }) => said(model))),
    ),
  }
}
