/** Threads with their own session run the network on the image that they have just decoded. */
import { createHash } from "node:crypto"
import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { InferenceFailed, type Predictor } from "#actors/plant-disease/predictor.ts"
import { failureOf, likeliest, names, png, pngs, predicting } from "./predicting.ts"

const wanted = Array.from({ length: 12 }, (_, n) => names[(n * 7) % 3] ?? "red")
const together = { concurrency: "unbounded" } as const

/** Predicts all at once; each result belongs to its own image. */
const predictedAll = Effect.fnUntraced(function* ({ predict }: Predictor["Service"]) {
  const all = yield* Effect.forEach(wanted, (name) => predict(png(name)), together)
  expect(all.map(({ probabilities }) => likeliest(probabilities))).toEqual(wanted)
  return all
})

describe("an image that is prepared and predicted in one go", () => {
  const settings = { workers: 2, batch_max: 1 }

  it.live("has its own answer, and counts as a run of one", () =>
    predicting(
      (predictor) =>
        Effect.gen(function* () {
          const all = yield* predictedAll(predictor)
          const [first] = wanted
          const sha256 = createHash("sha256")
            .update(pngs[first ?? "red"])
            .digest("hex")
          expect(all[0]).toMatchObject({ width: 60, height: 40, sha256 })
          expect(yield* predictor.batches).toEqual([0, wanted.length])
          expect(yield* predictor.load).toEqual({ waiting: 0, running: 0 })
        }),
      { settings },
    ),
  )

  it.live("waits for no other where the network takes several", () =>
    predicting(
      (predictor) =>
        Effect.gen(function* () {
          yield* predictedAll(predictor)
          expect(yield* predictor.batches).toEqual([0, wanted.length, 0, 0, 0])
        }),
      { settings: { workers: 2, batch_max: 4 } },
    ),
  )

  it.live("fails alone where the network answers no number", () =>
    predicting(
      (predictor) =>
        Effect.gen(function* () {
          const failure = yield* failureOf(predictor.predict(png("red")))
          expect(failure).toBeInstanceOf(InferenceFailed)
          expect(failure.detail).toBe("The network returned a value that is not a number.")
          expect(likeliest((yield* predictor.predict(png("blue"))).probabilities)).toBe("blue")
        }),
      { network: { ends: "nan" }, settings },
    ),
  )

  it.live("has the answer that it has where decoding and network have threads of their own", () =>
    Effect.gen(function* () {
      const predicted = (parameters: number) =>
        predicting(
          (predictor) => Effect.map(predictor.predict(png("green")), (one) => one.probabilities),
          { network: { parameters, ends: "logits" }, settings },
        )
      expect(yield* predicted(100_000_000)).toEqual(yield* predicted(1))
    }),
  )
})
