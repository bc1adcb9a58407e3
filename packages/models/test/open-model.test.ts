/** Opening a model, and the cache of conversions. */

import { createHash } from "node:crypto"
import {
  cpSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from "node:fs"
import { join } from "node:path"
import { Effect, Fiber } from "effect"
import { describe, expect, it } from "vitest"
import { Tensor } from "#onnx-runtime"
import { openSession, tensor_length } from "#predictor"
import { demo_model } from "../demo.ts"
import { type Attribute, type Constant, type Operation, writeOnnx } from "../onnx/writer.ts"
import { openModel } from "../open-model.ts"
import { weightOf } from "../weight.ts"
import { difference, expected, fixtureBytes, newPath, runOnnx } from "./run-network.ts"

const folderOf = (files: Readonly<Record<string, Uint8Array | string>>) => {
  const folder = newPath("model")
  mkdirSync(folder)
  for (const [name, bytes] of Object.entries(files)) writeFileSync(join(folder, name), bytes)
  return folder
}

const names = (count: number) => JSON.stringify(Array.from({ length: count }, (_, at) => `c${at}`))

const open = (model_path: string, cache_dir: string) =>
  openModel({ model_path, classes_path: "", cache_dir })

const run = <A, E>(effect: Effect.Effect<A, E>) => Effect.runPromise(effect)
const errorOf = async (model_path: string) =>
  (await run(Effect.flip(open(model_path, newPath("cache"))))).detail

const operation = (
  type: string,
  inputs: ReadonlyArray<string>,
  output: string,
  attributes: Readonly<Record<string, Attribute>> = {},
): Operation => ({ type, inputs, outputs: [output], attributes })

/** An .onnx whose outputs are the means of the channels, with optional operations after them. */
const onnxOf = (
  sides: ReadonlyArray<number | string>,
  more: ReadonlyArray<Operation> = [],
  constants: ReadonlyArray<Constant> = [],
) => {
  const axes = sides[1] === 3 ? [2, 3] : [1, 2]
  const path = newPath("some.onnx")
  const mean = operation("ReduceMean", ["image"], "mean", { axes, keepdims: 0 })
  const last = more.at(-1)?.outputs[0] ?? "mean"
  writeOnnx(path, {
    operations: [mean, ...more],
    constants,
    input: { name: "image", shape: sides },
    output: { name: last, shape: ["N", "K"] },
  })
  return folderOf({ "leaf.onnx": readFileSync(path), "class_indices.json": names(3) })
}

describe("a Keras model", () => {
  it("is described by its hash, size, weights and classes", async () => {
    const bytes = fixtureBytes("small.h5")
    const folder = folderOf({ "leaf net.h5": bytes, "class_indices.json": names(4) })
    const opened = await run(open(join(folder, "leaf net.h5"), newPath("cache")))
    expect(opened.info).toEqual({
      name: "leaf net",
      format: "keras-h5",
      sha256: createHash("sha256").update(bytes).digest("hex"),
      bytes: bytes.length,
      parameters: 1965,
      classes: ["c0", "c1", "c2", "c3"],
      is_demo: false,
    })
    expect(opened.input).toEqual({
      name: "input",
      layout: "NHWC",
      batch: "any",
      has_rescaling: true,
    })
    const values = await runOnnx(opened.onnx_path, opened.output.name)
    expect(difference(values, expected["small.h5"] ?? [])).toBeLessThan(1e-5)
  })

  it("is the demo model if the names of all classes begin with Demo", async () => {
    const classes = '["Demo_a","Demo_b","Demo_c"]'
    const folder = folderOf({ "a.keras": fixtureBytes("nested.keras"), "a.classes.json": classes })
    const opened = await run(open(join(folder, "a.keras"), newPath("cache")))
    expect(opened.info).toMatchObject({ is_demo: true, format: "keras" })
  })

  it("with a different number of classes and outputs is rejected in one line", async () => {
    const folder = folderOf({ "a.h5": fixtureBytes("small.h5"), "class_indices.json": names(38) })
    expect(await errorOf(join(folder, "a.h5"))).toBe(
      "The class file has 38 classes, but the network has 4 outputs.",
    )
  })
})

describe("the demo model", () => {
  it("is rejected with another class file", async () => {
    const folder = folderOf({ "mine.json": names(16) })
    const opening = openModel({
      model_path: demo_model,
      classes_path: join(folder, "mine.json"),
      cache_dir: newPath("cache"),
    })
    expect((await run(Effect.flip(opening))).detail).toBe(
      "plant.classes is only for your own network: also set plant.model.",
    )
  })
})

describe("a conversion", () => {
  const folder = folderOf({ "a.h5": fixtureBytes("small.h5"), "class_indices.json": names(4) })
  const path = join(folder, "a.h5")

  it("happens once for the same bytes at any path", async () => {
    const cache = newPath("cache")
    const first = await run(open(path, cache))
    const made_at = statSync(first.onnx_path).mtimeMs
    const elsewhere = join(folderOf({ "class_indices.json": names(4) }), "b.h5")
    cpSync(path, elsewhere)
    const again = await run(open(elsewhere, cache))
    expect(again.onnx_path).toBe(first.onnx_path)
    expect(statSync(again.onnx_path).mtimeMs).toBe(made_at)
    expect(again.output).toEqual(first.output)
    expect(readdirSync(cache)).toHaveLength(1)
  })

  it("is repeated if the cache entry is damaged", async () => {
    const cache = newPath("cache")
    const { onnx_path, output } = await run(open(path, cache))
    truncateSync(onnx_path, 1000)
    const again = await run(open(path, cache))
    expect(await runOnnx(again.onnx_path, output.name)).toHaveLength(4)
  })

  it("that is interrupted leaves nothing behind", async () => {
    const cache = newPath("cache")
    const fiber = Effect.runFork(open(path, cache))
    while (!readdirOf(cache).some((name) => name.startsWith("making-"))) await nextTurn()
    await run(Fiber.interrupt(fiber))
    while (readdirOf(cache).length > 0) await nextTurn()
    expect(readdirOf(cache)).toEqual([])
  })

  it("that was killed leaves no entry, and its folder is removed later", async () => {
    const cache = newPath("cache")
    const left = join(cache, "making-0")
    mkdirSync(left, { recursive: true })
    writeFileSync(join(left, "model.onnx"), "half")
    await run(open(path, cache))
    expect(readdirSync(cache)).toContain("making-0")
    utimesSync(left, new Date(0), new Date(0))
    await run(open(path, cache))
    expect(readdirSync(cache)).toHaveLength(1)
  })

  it("is cached for the four most recently used models", async () => {
    const cache = newPath("cache")
    for (let old = 0; old < 6; old++) {
      const entry = join(cache, `${String(old).padStart(64, "0")}-v1`)
      mkdirSync(entry, { recursive: true })
      utimesSync(entry, new Date(old * 1000), new Date(old * 1000))
    }
    const { onnx_path } = await run(open(path, cache))
    const kept = readdirSync(cache)
    expect(kept).toHaveLength(4)
    expect(kept.map((name) => name.slice(62, 64)).filter((end) => /^0[0-9]$/.test(end))).toEqual([
      "03",
      "04",
      "05",
    ])
    expect(statSync(onnx_path).isFile()).toBe(true)
  })

  it("with a cache folder that cannot be written fails in one line", async () => {
    const file = join(folderOf({ cache: "no folder" }), "cache")
    const { detail } = await run(Effect.flip(open(path, file)))
    expect(detail).toMatch(/^The model cannot be opened: [^\n]+$/)
  })
})

const readdirOf = (folder: string) => {
  try {
    return readdirSync(folder)
  } catch {
    return []
  }
}

/** The numbers of a row; none for an error. */
const numbersIn = (answer: Float32Array | string) =>
  answer instanceof Float32Array ? [...answer] : []

const nextTurn = () => new Promise((next) => setTimeout(next, 5))

describe("an .onnx", () => {
  const opened = (folder: string) => run(open(join(folder, "leaf.onnx"), newPath("cache")))
  const refused = (folder: string) => errorOf(join(folder, "leaf.onnx"))

  it("is run unchanged in NHWC order", async () => {
    const folder = onnxOf(["N", 224, 224, 3])
    const model = await opened(folder)
    expect(model.onnx_path).toBe(join(folder, "leaf.onnx"))
    expect(model.input).toMatchObject({ name: "image", layout: "NHWC", batch: "any" })
    expect(model.output).toMatchObject({ name: "mean", classes: 3, is_softmax: false })
    expect(model.info).toMatchObject({ format: "onnx", parameters: null })
  })

  it("may have NCHW order and a batch of one", async () => {
    const model = await opened(onnxOf([1, 3, 224, 224]))
    expect(model.input).toMatchObject({ layout: "NCHW", batch: 1 })
    const image = new Tensor("float32", new Float32Array(150_528).fill(0.25), [1, 3, 224, 224])
    expect([...(await runOnnx(model.onnx_path, "mean", { image }))]).toEqual([0.25, 0.25, 0.25])
  })

  it("returns probabilities if they sum to one", async () => {
    const model = await opened(
      onnxOf(["N", 224, 224, 3], [operation("Softmax", ["mean"], "soft", { axis: -1 })]),
    )
    expect(model.output).toMatchObject({ name: "soft", is_softmax: true, activation: "softmax" })
  })

  it("returns the outputs of a final sigmoid without a softmax", async () => {
    const sigmoid = operation("Sigmoid", ["mean"], "each")
    for (const more of [[], [operation("Flatten", ["each"], "flat", { axis: 1 })]]) {
      const model = await opened(onnxOf(["N", 224, 224, 3], [sigmoid, ...more]))
      expect(model.output).toMatchObject({ is_softmax: false, activation: "sigmoid" })
      const session = await openSession({ network: model, threads: 1, batch_max: 1 })
      const answers = await session.run([new Float32Array(tensor_length).fill(1)])
      await session.end()
      const likely = 1 / (1 + Math.exp(-1))
      expect(difference(answers.flatMap(numbersIn), [likely, likely, likely])).toBeLessThan(1e-6)
    }
  })

  it("with a single sigmoid has two classes, and returns the second's probability", async () => {
    const mean_of_all = operation("ReduceMean", ["mean"], "all", { axes: [1], keepdims: 1 })
    const sigmoid = operation("Sigmoid", ["all"], "y")
    const folder = onnxOf(["N", 224, 224, 3], [mean_of_all, sigmoid])
    writeFileSync(join(folder, "class_indices.json"), names(2))
    const model = await opened(folder)
    expect(model.output).toMatchObject({ classes: 2, is_softmax: true })
    const session = await openSession({ network: model, threads: 1, batch_max: 4 })
    const images = [1, 0].map((level) => new Float32Array(tensor_length).fill(level))
    const answers = await session.run(images)
    await session.end()
    const likely = 1 / (1 + Math.exp(-1))
    expect(difference(answers.flatMap(numbersIn), [1 - likely, likely, 0.5, 0.5])).toBeLessThan(
      1e-6,
    )
    const bare = onnxOf(["N", 224, 224, 3], [mean_of_all])
    expect(await refused(bare)).toContain("one output, which is not a probability")
  })

  it("gets a softmax if its sigmoid is not the last operation", async () => {
    const half = { name: "half", weight: weightOf([0.5], []) }
    const more = [operation("Sigmoid", ["mean"], "each"), operation("Mul", ["each", "half"], "y")]
    const { output } = await opened(onnxOf(["N", 224, 224, 3], more, [half]))
    expect(output).toMatchObject({ is_softmax: false, activation: "none" })
  })

  it("with another input shape is rejected in one line", async () => {
    expect(await refused(onnxOf(["N", 299, 299, 3]))).toContain("[N, 224, 224, 3]")
    expect(await refused(onnxOf([32, 224, 224, 3]))).toContain("has the fixed batch size 32")
  })

  it("that returns NaN is rejected", async () => {
    const folder = onnxOf(
      ["N", 224, 224, 3],
      [operation("Div", ["mean", "zero"], "nothing")],
      [{ name: "zero", weight: weightOf([0], []) }],
    )
    expect(await refused(folder)).toContain("a value that is not a number")
  })

  it("that is damaged is rejected in one line", async () => {
    const folder = onnxOf(["N", 224, 224, 3])
    truncateSync(join(folder, "leaf.onnx"), 60)
    expect(await refused(folder)).toMatch(/^The model file is damaged[^\n]+$/)
  })
})
