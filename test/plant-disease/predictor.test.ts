import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import {
  InferenceFailed,
  TooLarge,
  Undecodable,
  WrongType,
} from "#actors/plant-disease/predictor.ts"
import type { Settings } from "#schemas/settings.ts"
import {
  type Colour,
  failureOf,
  failuresOf,
  type Given,
  imageOf,
  length,
  likeliest,
  names,
  png,
  pngs,
  predicting,
} from "./predicting.ts"

describe("a prediction", () => {
  it.live("has a probability for each class, the image's own size, its hash, and its time", () =>
    predicting((predictor) =>
      Effect.gen(function* () {
        const predicted = yield* predictor.predict(png("green"))
        expect(likeliest(predicted.probabilities)).toBe("green")
        expect(predicted.probabilities.reduce((one, other) => one + other)).toBeCloseTo(1, 5)
        expect(predicted).toMatchObject({ width: 60, height: 40 })
        expect(predicted.sha256).toMatch(/^[0-9a-f]{64}$/)
        expect(predicted.milliseconds).toBeGreaterThan(0)
        expect(predictor.model.classes).toEqual(names)
        expect(predictor.model.loaded_at).toMatch(/^\d{4}-.*Z$/)
      }),
    ),
  )

  it.live("hands the image over, and takes a part of a larger buffer all the same", () =>
    predicting((predictor) =>
      Effect.gen(function* () {
        const own = png("blue")
        yield* predictor.predict(own)
        expect(own.length).toBe(0)
        const large = new Uint8Array(pngs.red.length + 100)
        large.set(pngs.red, 50)
        const part = large.subarray(50, 50 + pngs.red.length)
        expect(likeliest((yield* predictor.predict(part)).probabilities)).toBe("red")
        expect(part.length).toBe(pngs.red.length)
      }),
    ),
  )

  it.live.each([
    ["each thread has a session", {}],
    ["one session serves all, and other threads prepare", { parameters: 20_000_000 }],
  ] as const)("of each of 60 at once is that of its own image where %s", ([, network]) =>
    predicting(
      (predictor) =>
        Effect.gen(function* () {
          const wanted = Array.from(
            { length: 60 },
            (_, n) => names[(n * 7 + (n >> 2)) % 3] ?? "red",
          )
          const all = yield* Effect.forEach(wanted, (colour) => predictor.predict(png(colour)), {
            concurrency: "unbounded",
          })
          expect(all.map(({ probabilities }) => likeliest(probabilities))).toEqual(wanted)
          expect(yield* predictor.load).toEqual({ waiting: 0, running: 0 })
        }),
      { network, settings: { queue_max: 64 } },
    ),
  )

  it.live.each([
    ["with planes first", { layout: "NCHW" }],
    ["that takes one image at a time", { batch: 1 }],
    ["that answers logits, by softmax", { ends: "logits" }],
  ] as const)("comes from a network %s just so", ([, network]) =>
    predicting(
      (predictor) =>
        Effect.gen(function* () {
          const all = yield* Effect.forEach(names, (colour) => predictor.predict(png(colour)), {
            concurrency: "unbounded",
          })
          expect(all.map(({ probabilities }) => likeliest(probabilities))).toEqual(names)
          const [one] = all
          expect(one?.probabilities.reduce((a, b) => a + b)).toBeCloseTo(1, 5)
        }),
      { network },
    ),
  )

  it.live.each(["bicubic", "bilinear", "nearest", "fast"] as const)(
    "can be of a %s resize",
    (resize) =>
      predicting(
        (predictor) =>
          Effect.map(predictor.predict(png("blue")), ({ probabilities }) =>
            expect(likeliest(probabilities)).toBe("blue"),
          ),
        { settings: { resize } },
      ),
  )

  it.live("of -1 to 1 differs from one of 0 to 1 as the scale says", () =>
    Effect.gen(function* () {
      const ratio = (scale: Settings["plant"]["scale"]) =>
        predicting(
          (predictor) =>
            Effect.map(predictor.predict(png("red")), ({ probabilities: [red = 0, green = 0] }) =>
              Math.log(red / green),
            ),
          { settings: { scale } },
        )
      // Twice the distance between two colours: the network's weights are 20.
      expect(yield* ratio("0..1")).toBeCloseTo((20 * 230) / 255, 2)
      expect(yield* ratio("-1..1")).toBeCloseTo((20 * 230) / 127.5, 1)
    }),
  )

  it.live("is by itself what the network divides, and what it is set to where it is set", () =>
    Effect.gen(function* () {
      const predict = (given: Given) =>
        predicting(
          (predictor) => Effect.map(predictor.predict(png("red")), (one) => one.probabilities),
          given,
        )
      const plain = yield* predict({})
      const network = { has_rescaling: true }
      for (const scale of ["auto", "0..255"] as const) {
        const dividing = yield* predict({ network, settings: { scale } })
        for (const [n, one] of plain.entries()) expect(dividing[n]).toBeCloseTo(one, 5)
      }
      // Divided twice, all colours look alike.
      const [red = 0, green = 0] = yield* predict({ network, settings: { scale: "0..1" } })
      expect(red - green).toBeLessThan(0.1)
      const given = yield* predict({ settings: { scale: "0..1" } })
      for (const [n, one] of plain.entries()) expect(given[n]).toBeCloseTo(one, 5)
    }),
  )

  it.live("turns a photo only when asked", () =>
    Effect.gen(function* () {
      const lying = yield* Effect.promise(() =>
        imageOf("red").withMetadata({ orientation: 6 }).jpeg().toBuffer(),
      )
      const size = (auto_orient: boolean) =>
        predicting((predictor) => predictor.predict(Uint8Array.from(lying)), {
          settings: { auto_orient },
        })
      expect(yield* size(false)).toMatchObject({ width: 60, height: 40 })
      expect(yield* size(true)).toMatchObject({ width: 40, height: 60 })
    }),
  )
})

describe("a prediction is refused", () => {
  const refusal = (image: Uint8Array, settings: Partial<Settings["plant"]> = {}) =>
    predicting((predictor) => failureOf(predictor.predict(image)), { settings })

  it.live("as of a wrong type when it is neither a JPEG nor a PNG, or nothing", () =>
    Effect.gen(function* () {
      expect(yield* refusal(Buffer.from("<svg/>"))).toBeInstanceOf(WrongType)
      expect(yield* refusal(new Uint8Array(0))).toBeInstanceOf(WrongType)
    }),
  )
  it.live("as undecodable when it ends early", () =>
    Effect.map(refusal(png("red").subarray(0, 70)), (failure) =>
      expect(failure).toBeInstanceOf(Undecodable),
    ),
  )
  it.live("as too large by its bytes, one beyond the limit", () =>
    Effect.gen(function* () {
      const image = () => Uint8Array.from([...pngs.red, ...new Uint8Array(2000 - pngs.red.length)])
      const failure = yield* refusal(image(), { image_bytes_max: 1999 })
      expect(failure).toBeInstanceOf(TooLarge)
      expect(failure.detail).toBe("It has 2000 bytes; the maximum is 1999.")
      yield* predicting((predictor) => predictor.predict(image()), {
        settings: { image_bytes_max: 2000 },
      })
    }),
  )
  it.live("as too large by its pixels", () =>
    Effect.map(refusal(png("red"), { image_pixels_max: 2399 }), (failure) =>
      expect(failure).toEqual(
        new TooLarge({ detail: "It has 60 by 40 pixels; the maximum is 2399." }),
      ),
    ),
  )
})

describe("a network's output", () => {
  it.live("that is no number fails its own image only, not its batch", () =>
    predicting(
      (predictor) =>
        Effect.gen(function* () {
          const colours: ReadonlyArray<Colour> = ["green", "red", "blue", "red", "green", "blue"]
          const all = yield* Effect.forEach(
            colours,
            (colour) => Effect.exit(predictor.predict(png(colour))),
            { concurrency: "unbounded" },
          )
          const failed = all.map((exit) => failuresOf(exit)[0])
          const detail = "The network returned a value that is not a number."
          expect(failed.map((one) => one?.detail)).toEqual(
            colours.map((colour) => (colour === "red" ? detail : undefined)),
          )
        }),
      { network: { ends: "nan" } },
    ),
  )

  it.live("that is no probability fails", () =>
    predicting(
      (predictor) =>
        Effect.map(failureOf(predictor.predict(png("red"))), (failure) =>
          expect(failure).toEqual(
            new InferenceFailed({
              detail: "The network returned a value that is not a probability.",
            }),
          ),
        ),
      { network: { ends: "fours" } },
    ),
  )

  it.live("of one row for several images makes it predict one by one", () =>
    predicting(
      (predictor) =>
        Effect.gen(function* () {
          // All wait at once, so that they could form a batch.
          const tensors = Float32Array.from({ length: 6 * length }, (_, n) =>
            n % 3 === Math.floor(n / length) % 3 ? 1 : 0,
          )
          const rows = yield* predictor.infer(tensors, 6)
          const predictions = [0, 1, 2, 3, 4, 5].map((n) =>
            likeliest(rows.subarray(n * 3, n * 3 + 3)),
          )
          expect(predictions).toEqual([...names, ...names])
        }),
      { network: { ends: "one row" }, settings: { workers: 1 } },
    ),
  )

  it.live("of another size than the classes stops the start in one line", () =>
    Effect.gen(function* () {
      const failure = yield* failureOf(predicting(() => Effect.void, { network: { classes: 5 } }))
      expect(failure).toMatchObject({
        _tag: "ModelUnusable",
        detail: "The model colours cannot be run: Its output is not float32[1, 5].",
      })
    }),
  )
})
