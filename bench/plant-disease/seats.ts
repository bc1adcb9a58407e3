/** Contestants of the plant suite: the predictor itself, and the runtimes alone. */
import { once } from "node:events"
import { Worker } from "node:worker_threads"
import { Effect, Exit, Layer, References, Scope } from "effect"
import { Predictor } from "#actors/plant-disease/predictor.ts"
import { predictorOnnx } from "#adapters/plant-disease/predictor-onnx.ts"
import type { OpenedModel } from "#models"
import type { Settings } from "#schemas/settings.ts"
import { plantSettings } from "../../test/plant-disease/colour-network.ts"
import { drive, type Effort, type Round, summary } from "../harness/round.ts"
import type { Bare } from "./bare.ts"

export interface PlantSeat {
  readonly name: string
  readonly round: (effort: Effort) => Promise<Round>
  readonly stop: () => Promise<void>
}

/** The predictor over a network, given the same image repeatedly. */
export const predictorSeat = async (
  name: string,
  model: OpenedModel,
  image: Uint8Array,
  in_flight: number,
  change: Partial<Settings["plant"]> = {},
): Promise<PlantSeat> => {
  const scope = Scope.makeUnsafe()
  const layer = predictorOnnx({ model, settings: plantSettings({ workers: 0, ...change }) })
  const context = await Effect.runPromise(
    Layer.buildWithScope(layer, scope).pipe(
      Effect.provideService(References.MinimumLogLevel, "None"),
    ),
  )
  const predict = Effect.flatMap(Effect.service(Predictor), (predictor) =>
    predictor.predict(Uint8Array.from(image)),
  ).pipe(Effect.provide(context))
  const run = async () => void (await Effect.runPromise(predict))
  return {
    name,
    round: (effort) => drive(run, 0, { ...effort, in_flight }),
    stop: () => Effect.runPromise(Scope.close(scope, Exit.void)),
  }
}

/** Threads that run the network concurrently and independently; one run is `batch` images. */
export const bareSeat = async (name: string, bare: Bare, workers: number): Promise<PlantSeat> => {
  const program = new URL("./bare.ts", import.meta.url)
  const threads = await Promise.all(
    Array.from({ length: workers }, async () => {
      const worker = new Worker(program, { workerData: bare })
      await once(worker, "message")
      return worker
    }),
  )
  return {
    name,
    round: async ({ seconds }) => {
      const rounds = threads.map(async (worker) => {
        worker.postMessage(seconds)
        const [latencies]: ReadonlyArray<ReadonlyArray<number>> = await once(worker, "message")
        return latencies ?? []
      })
      const latencies = (await Promise.all(rounds)).flat()
      const { runs, runs_per_s, ...rest } = summary(latencies, seconds)
      return { runs: runs * bare.batch, runs_per_s: runs_per_s * bare.batch, ...rest }
    },
    stop: async () => void (await Promise.all(threads.map((worker) => worker.terminate()))),
  }
}
