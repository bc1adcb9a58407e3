/** The pool's answers as effects: its queues are left when nobody waits any longer. */
import { Effect } from "effect"
import {
  InferenceFailed,
  type Predicted,
  type PredictFailure,
  TooLarge,
  Undecodable,
  WrongType,
} from "#actors/plant-disease/predictor.ts"
import type { Begun, Cancel, Failed, Pool, Ran } from "#predictor"

const isFailed = (answer: unknown): answer is Failed =>
  typeof answer === "object" &&
  answer !== null &&
  "kind" in answer &&
  (answer.kind === "refused" || answer.kind === "failed")

const failureOf = (answer: Failed): PredictFailure => {
  const { detail } = answer
  if (answer.kind === "failed") return new InferenceFailed({ detail })
  switch (answer.problem) {
    case "type":
      return new WrongType({ detail })
    case "size":
      return new TooLarge({ detail })
    case "content":
      return new Undecodable({ detail })
  }
}

/** Waits for an answer of the pool; whoever stops waiting leaves its queue. */
export const asked = <A>(begin: (told: (answer: A | Failed) => void) => Cancel) =>
  Effect.callback<A, PredictFailure>((resume) => {
    const cancel = begin((answer) =>
      resume(isFailed(answer) ? Effect.fail(failureOf(answer)) : Effect.succeed(answer)),
    )
    return Effect.sync(cancel)
  })

/** Prepared and inferred in one go: the network's queue has it before a thread takes the next. */
export const chained = (
  pool: Pool,
  image: Uint8Array,
  predictedOf: (begun: Begun | Ran, probabilities: Float32Array) => Predicted,
  told: (answer: Predicted | Failed) => void,
): Cancel => {
  let is_over = false
  let cancel = pool.predict(image, (begun) => {
    if (is_over) return
    if (begun.kind === "predicted") {
      const { row } = begun
      return told(
        typeof row === "string" ? { kind: "failed", detail: row } : predictedOf(begun, row),
      )
    }
    if (begun.kind !== "prepared") return told(begun)
    cancel = pool.infer(begun.rgb, (answer) =>
      told(answer instanceof Float32Array ? predictedOf(begun, answer) : answer),
    )
  })
  return () => {
    is_over = true
    cancel()
  }
}
