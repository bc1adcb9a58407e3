import { join } from "node:path"
import { describe, expect, it } from "@effect/vitest"
import { Duration, Effect, Exit, Fiber, Layer, References, Scope } from "effect"
import sharp from "sharp"
import { Busy, InferenceFailed, WrongType } from "#actors/plant-disease/predictor.ts"
import { predictorOnnx, threadsFor } from "#adapters/plant-disease/predictor-onnx.ts"
import { end_ms_max } from "#predictor"
import { StopDeadline } from "#processes"
import { deadly, dying_thread } from "../../packages/predictor/test/dying-thread.ts"
import { colourNetwork, plantSettings, scratch } from "./colour-network.ts"
import {
  type Colour,
  failureOf,
  failuresOf,
  imageOf,
  length,
  likeliest,
  names,
  png,
  pngs,
  predicting,
  rgb,
  side,
} from "./predicting.ts"

const soon_ms = 50

describe("the queue", () => {
  const settings = { workers: 1, batch_max: 1, queue_max: 4 }

  it.live("turns away who finds it full, with a time to ask again, and serves the others", () =>
    predicting(
      (predictor) =>
        Effect.gen(function* () {
          const all = yield* Effect.forEach(
            Array.from({ length: 30 }),
            () => Effect.exit(predictor.predict(png("green"))),
            { concurrency: "unbounded" },
          )
          const failures = all.flatMap(failuresOf)
          // The thread runs one and holds the next; four wait.
          expect(failures.length).toBe(24)
          for (const failure of failures) {
            expect(failure).toBeInstanceOf(Busy)
            expect(failure).toMatchObject({ retry_after_seconds: 1 })
          }
          expect(yield* predictor.load).toEqual({ waiting: 0, running: 0 })
          yield* predictor.predict(png("green"))
        }),
      { settings },
    ),
  )

  it.live("is left by who does not wait any longer", () =>
    predicting(
      (predictor) =>
        Effect.gen(function* () {
          const waiting = yield* Effect.forEach(Array.from({ length: 5 }), () =>
            Effect.forkChild(predictor.predict(png("green")), { startImmediately: true }),
          )
          expect(yield* predictor.load).toEqual({ waiting: 3, running: 2 })
          yield* Effect.forEach(waiting, Fiber.interrupt)
          expect((yield* predictor.load).waiting).toBe(0)
          const { probabilities } = yield* predictor.predict(png("blue"))
          expect(likeliest(probabilities)).toBe("blue")
        }),
      { settings },
    ),
  )

  it.live("fails its waiting callers when the service ends", () =>
    Effect.gen(function* () {
      const waiting = yield* predicting(
        (predictor) =>
          Effect.forEach(Array.from({ length: 5 }), () =>
            Effect.forkDetach(predictor.predict(png("green")), { startImmediately: true }),
          ),
        { settings },
      )
      const ends = yield* Effect.forEach(waiting, Fiber.await)
      // The two that a thread held may still have received a result.
      expect(ends.flatMap(failuresOf).length).toBeGreaterThanOrEqual(3)
      for (const failure of ends.flatMap(failuresOf)) {
        expect(failure).toEqual(new InferenceFailed({ detail: "The service is shutting down." }))
      }
    }),
  )
})

describe("a thread that ends by itself", () => {
  it.live("fails the image it had, and is replaced", () =>
    predicting(
      (predictor) =>
        Effect.gen(function* () {
          const image = Uint8Array.from([...pngs.red, deadly])
          const failure = yield* failureOf(predictor.predict(image))
          expect(failure).toBeInstanceOf(InferenceFailed)
          expect(failure.detail).toMatch(/^The thread that processed it exited: /)
          const after = yield* Effect.forEach(names, (colour) => predictor.predict(png(colour)))
          expect(after.map(({ probabilities }) => likeliest(probabilities))).toEqual(names)
        }),
      { settings: { workers: 1 }, program: dying_thread },
    ),
  )

  it.live("is no start where it cannot open the network", () =>
    Effect.gen(function* () {
      const folder = yield* scratch
      const model = { ...colourNetwork(join(folder, "a.onnx")), onnx_path: import.meta.filename }
      const layer = predictorOnnx({ model, settings: plantSettings() })
      const failure = yield* failureOf(Effect.scoped(Layer.build(layer)))
      expect(failure._tag).toBe("ModelUnusable")
      expect(failure.detail).toMatch(/^The model colours cannot be run: [^\n]+$/)
      const missing = { ...model, onnx_path: join(folder, "b.onnx") }
      const other = predictorOnnx({ model: missing, settings: plantSettings() })
      expect((yield* failureOf(Effect.scoped(Layer.build(other)))).detail).toContain("ENOENT")
    }).pipe(Effect.scoped, Effect.provideService(References.MinimumLogLevel, "None")),
  )
})

describe("a thread that does not end", () => {
  it.live("is ended when the process that stops has no more time for it", () =>
    Effect.gen(function* () {
      const deaf = `
        import { parentPort } from "node:worker_threads"
        parentPort.on("message", () => {})
        parentPort.postMessage({ kind: "ready", batch: 1 })`
      const work = () => Effect.succeed(soon_ms)
      const model = colourNetwork(join(yield* scratch, "a.onnx"))
      const program = new URL(`data:text/javascript,${encodeURIComponent(deaf)}`)
      const layer = predictorOnnx({ model, settings: plantSettings(), program })
      const scope = yield* Scope.make()
      yield* Layer.build(layer).pipe(
        Scope.provide(scope),
        Effect.provideService(StopDeadline, { begin: Effect.void, work, part: work, rest: work }),
      )
      const [took] = yield* Effect.timed(Scope.close(scope, Exit.void))
      // The default deadline is five seconds.
      expect(Duration.toMillis(took)).toBeLessThan(end_ms_max)
    }).pipe(Effect.scoped),
  )
})

describe("a network that answers what is no number", () => {
  it.live("fails the start, before an image fails", () =>
    Effect.gen(function* () {
      const model = colourNetwork(join(yield* scratch, "a.onnx"), { ends: "no number" })
      const layer = predictorOnnx({ model, settings: plantSettings() })
      const failure = yield* failureOf(Effect.scoped(Layer.build(layer)))
      expect(failure.detail).toBe(
        "The model colours cannot be run: The network returned a value that is not a number.",
      )
    }).pipe(Effect.scoped, Effect.provideService(References.MinimumLogLevel, "None")),
  )
})

describe("tensors", () => {
  const tensor = (colour: Colour) =>
    Float32Array.from({ length }, (_, n) => (rgb[colour][n % 3] ?? 0) / 255)

  it.live("that are given as such are predicted in their order", () =>
    predicting((predictor) =>
      Effect.gen(function* () {
        const colours: ReadonlyArray<Colour> = ["blue", "red", "green", "blue", "red"]
        const all = new Float32Array(colours.length * length)
        for (const [n, colour] of colours.entries()) all.set(tensor(colour), n * length)
        const rows = yield* predictor.infer(all, colours.length)
        expect(rows.length).toBe(15)
        const predictions = colours.map((_, n) => likeliest(rows.subarray(n * 3, n * 3 + 3)))
        expect(predictions).toEqual(colours)
        expect(all.length).toBe(colours.length * length)
      }),
    ),
  )

  it.live("are refused where they find no room, and where they have another size", () =>
    predicting(
      (predictor) =>
        Effect.gen(function* () {
          const busy = yield* failureOf(predictor.infer(new Float32Array(3 * length), 3))
          expect(busy).toBeInstanceOf(Busy)
          const wrong = yield* failureOf(predictor.infer(new Float32Array(length + 1), 1))
          expect(wrong).toBeInstanceOf(InferenceFailed)
        }),
      { settings: { queue_max: 2 } },
    ),
  )
})

describe("an explanation", () => {
  /** Gray, with a green square above and right of the centre. */
  const spotted = Effect.promise(async () => {
    const { data } = await imageOf("green", 48, 48).raw().toBuffer({ resolveWithObject: true })
    const spot = { input: data, raw: { width: 48, height: 48, channels: 3 } as const }
    const background = { r: 120, g: 120, b: 120 }
    const whole = sharp({ create: { width: side, height: side, channels: 3, background } })
    const drawn = whole.composite([{ ...spot, left: 128, top: 32 }])
    return Uint8Array.from(await drawn.png().toBuffer())
  })
  const pixels = (image: Uint8Array) =>
    Effect.promise(() => sharp(image).removeAlpha().raw().toBuffer({ resolveWithObject: true }))

  it.live("is a PNG of 224 by 224 that is painted where the class is, and nowhere else", () =>
    predicting((predictor) =>
      Effect.gen(function* () {
        const image = yield* spotted
        const before = yield* pixels(image)
        const { data, info } = yield* pixels(yield* predictor.explain(image, 1))
        expect(info).toMatchObject({ width: side, height: side, channels: 3 })
        const paintAt = (x: number, y: number) => {
          const at = (y * side + x) * 3
          const colours = [at, at + 1, at + 2]
          return Math.max(...colours.map((n) => Math.abs((data[n] ?? 0) - (before.data[n] ?? 0))))
        }
        expect(paintAt(152, 56)).toBeGreaterThan(80)
        for (const [x, y] of [
          [56, 152],
          [56, 56],
          [152, 152],
          [200, 200],
        ] as const) {
          expect(paintAt(x, y)).toBeLessThan(12)
        }
      }),
    ),
  )

  it.live("is of the likeliest class where none is named, and none of a class there is not", () =>
    predicting((predictor) =>
      Effect.gen(function* () {
        const named = yield* predictor.explain(yield* spotted, 1)
        expect(Buffer.compare(named, yield* predictor.explain(yield* spotted))).toBe(0)
        expect(yield* failureOf(predictor.explain(yield* spotted, 3))).toEqual(
          new InferenceFailed({ detail: "The class 3 does not exist." }),
        )
        expect(yield* failureOf(predictor.explain(Buffer.from("none")))).toBeInstanceOf(WrongType)
      }),
    ),
  )

  it.live("is refused as busy where four are in the making, and then possible again", () =>
    predicting((predictor) =>
      Effect.gen(function* () {
        const image = yield* spotted
        const all = yield* Effect.forEach(
          Array.from({ length: 6 }),
          () => Effect.exit(predictor.explain(image.slice())),
          { concurrency: "unbounded" },
        )
        expect(all.flatMap(failuresOf).map(({ _tag }) => _tag)).toEqual(["Busy", "Busy"])
        yield* predictor.explain(image.slice())
      }),
    ),
  )
})

describe("threads", () => {
  it("have a session each for a small network, and share one for a large one", () => {
    expect(threadsFor(9_000_000, 3)).toEqual({ sessions: 3, session_threads: 1, preparers: 0 })
    expect(threadsFor(191_000_000, 3)).toEqual({ sessions: 1, session_threads: 3, preparers: 3 })
    expect(threadsFor(1, 0).sessions).toBeGreaterThan(0)
  })
})
