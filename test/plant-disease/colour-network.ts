/** Small ONNX networks for tests that classify red, green and blue images. */
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Effect } from "effect"
import type { PredictorOptions } from "#adapters/plant-disease/predictor-onnx.ts"
import { type Constant, type Operation, weightOf, writeOnnx } from "#models"
import type { Settings } from "#schemas/settings.ts"
import { given } from "../world/settings-given.ts"

export type Model = PredictorOptions["model"]

export interface Variant {
  readonly layout?: "NHWC" | "NCHW"
  /** The batch size that the file declares. */
  readonly batch?: number | "N"
  /** The output of its last layer. */
  readonly ends?: "softmax" | "logits" | "nan" | "one row" | "fours" | "no number"
  /** Whether the input is bytes, which the network divides by 255. */
  readonly has_rescaling?: boolean
  /** The model's declared number of weights: with many, one session serves all cores. */
  readonly parameters?: number
  /** The model's declared number of classes. */
  readonly classes?: number
}

export const colours = ["red", "green", "blue"]
/** Sharpness of the softmax: if one colour leads by 0.5, its probability is 0.9999. */
const sharpness = 20
const side = 224

const operation = (
  type: string,
  inputs: ReadonlyArray<string>,
  output: string,
  attributes: Operation["attributes"] = {},
): Operation => ({ type, inputs, outputs: [output], attributes })

const constants: ReadonlyArray<Constant> = [
  {
    name: "w",
    weight: weightOf([sharpness, 0, 0, 0, sharpness, 0, 0, 0, sharpness], [3, 3]),
  },
  { name: "b", weight: weightOf([0, 0, 0]) },
  // For an image that is mostly red, this computes the root of a negative number.
  { name: "green less red", weight: weightOf([-1, 0, 0, 1, 1, 0, 0, 0, 1], [3, 3]) },
  { name: "all", integers: [0] },
  { name: "one row", integers: [1, 3] },
  { name: "255", weight: weightOf([255]) },
  { name: "four", weight: weightOf([4]) },
  { name: "nought", weight: weightOf([0]) },
]

const endings: Readonly<Record<NonNullable<Variant["ends"]>, ReadonlyArray<Operation>>> = {
  softmax: [operation("Softmax", ["d"], "y", { axis: -1 })],
  logits: [operation("Identity", ["d"], "y")],
  nan: [operation("MatMul", ["f", "green less red"], "n"), operation("Sqrt", ["n"], "y")],
  "one row": [operation("ReduceMean", ["d"], "y", { axes: [0], keepdims: 1 })],
  fours: [operation("Mul", ["d", "four"], "y")],
  // The result of weights that are NaN.
  "no number": [operation("Div", ["d", "nought"], "n"), operation("Softmax", ["n"], "y")],
}

/** Writes the network to `path`; returns the model as `openModel` would describe it. */
export const colourNetwork = (path: string, variant: Variant = {}): Model => {
  const {
    layout = "NHWC",
    batch = "N",
    ends = "softmax",
    classes = 3,
    has_rescaling = false,
  } = variant
  const has_logits = ends === "logits" || ends === "one row"
  const planes =
    layout === "NHWC" ? [operation("Transpose", ["x"], "t", { perm: [0, 3, 1, 2] })] : []
  const plane = layout === "NHWC" ? "t" : "x"
  const operations = [
    ...planes,
    ...(has_rescaling ? [operation("Div", [plane, "255"], "s")] : []),
    operation("GlobalAveragePool", [has_rescaling ? "s" : plane], "g"),
    operation("Flatten", ["g"], "f", { axis: 1 }),
    operation("Gemm", ["f", "w", "b"], "d"),
    ...endings[ends],
  ]
  const sides = layout === "NHWC" ? [side, side, 3] : [3, side, side]
  const used = new Set(operations.flatMap(({ inputs }) => inputs))
  writeOnnx(path, {
    operations,
    constants: constants.filter(({ name }) => used.has(name)),
    input: { name: "x", shape: [batch, ...sides] },
    output: { name: "y", shape: [ends === "one row" ? "M" : batch, 3] },
  })
  return {
    onnx_path: path,
    input: { name: "x", layout, has_rescaling },
    output: { name: "y", classes, activation: has_logits ? "none" : "softmax" },
    info: {
      name: "colours",
      format: "onnx",
      sha256: "00",
      bytes: 1,
      parameters: variant.parameters ?? 12,
      classes: colours,
      is_demo: false,
    },
  }
}

/** A new folder for one test, deleted when its scope ends. */
export const scratch = Effect.acquireRelease(
  Effect.sync(() => mkdtempSync(join(tmpdir(), "almanac-plant-"))),
  (folder) => Effect.sync(() => rmSync(folder, { recursive: true, force: true })),
)

export const plantSettings = (change: Partial<Settings["plant"]> = {}): Settings["plant"] =>
  given({ plant: { workers: 2, ...change } }).plant
