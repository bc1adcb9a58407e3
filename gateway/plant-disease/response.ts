/** Responses of plant disease prediction: the model that produced them, and errors. */
import { Effect } from "effect"
import { HttpServerResponse } from "effect/http"
import { type PredictFailure, Predictor } from "#actors/plant-disease/predictor.ts"
import { failureOf } from "#gateway/plant-disease/prediction.ts"
import { BadForm, ImageTooLarge, NoImage, NoModel } from "#schemas/plant-disease/rejection.ts"

/** Why a request is rejected before its image is read. */
export type Refusal = BadForm | ImageTooLarge | NoImage | NoModel
export type Failure = Refusal | PredictFailure

/** Not cached: another model may predict a different class for the same image. */
const answer_headers = { "cache-control": "no-store" }

const statuses = [
  [BadForm, 400],
  [NoModel, 404],
  [ImageTooLarge, 413],
  [NoImage, 415],
] as const

const isRefusal = (failure: Failure): failure is Refusal => "error" in failure

/** The response to a failure; the error of the network is logged. */
const refused = Effect.fnUntraced(function* (failure: Failure) {
  if (isRefusal(failure)) {
    const [, status] = statuses.find(([kind]) => failure instanceof kind) ?? [BadForm, 400]
    return HttpServerResponse.jsonUnsafe({ error: failure.error }, { status })
  }
  if (failure._tag === "InferenceFailed") {
    yield* Effect.logError(`A prediction failed: ${failure.detail}`)
  }
  const { status, error, retry_after_seconds: wait_s } = failureOf(failure)
  const headers: Record<string, string> = wait_s === undefined ? {} : { "retry-after": `${wait_s}` }
  return HttpServerResponse.jsonUnsafe({ error }, { status, headers })
})

/** Adds the name of the model to every response. */
export const respond = <R>(
  answer: Effect.Effect<HttpServerResponse.HttpServerResponse, Failure, R>,
) =>
  Effect.gen(function* () {
    const { model } = yield* Predictor
    const response = yield* Effect.catch(answer, refused)
    const headers = { ...answer_headers, "x-model-sha256": model.sha256 }
    return HttpServerResponse.setHeaders(response, headers)
  })
