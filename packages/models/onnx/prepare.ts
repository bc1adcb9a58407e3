/**
 * Inspects an `.onnx` model: ONNX Runtime opens it, and a run on test images shows whether its
 * outputs are probabilities. A final sigmoid is found in the file itself.
 *
 * Blocks its thread. Source: plant facts 2.
 */
import { InferenceSession, Tensor } from "#onnx-runtime"
import { side } from "#schemas/image-side.ts"
import { reject } from "../model-error.ts"
import type { PreparedModel } from "../prepared-model.ts"
import { outputOperation } from "./output-operation.ts"

type Port = InferenceSession.ValueMetadata

/** Checks the only input: NHWC or NCHW, with a dynamic batch or a batch of 1. */
const inputOf = (ports: ReadonlyArray<Port>): PreparedModel["input"] => {
  const [port] = ports
  if (port === undefined || ports.length > 1 || !port.isTensor) {
    return reject(
      `The ONNX model has ${ports.length} inputs; only models with one input are supported.`,
    )
  }
  const [batch, ...dims] = port.shape
  const shape = `[${port.shape.join(", ")}]`
  if (port.type !== "float32") {
    return reject(`The ONNX model takes ${port.type}; only float32 is supported.`)
  }
  const matches = (...wanted: ReadonlyArray<number>) =>
    dims.length === 3 &&
    dims.every((is, axis) => typeof is !== "number" || is < 1 || is === wanted[axis]) &&
    dims.includes(3)
  const is_nhwc = matches(side, side, 3)
  if (!is_nhwc && !matches(3, side, side)) {
    return reject(
      `The ONNX model takes a tensor of ${shape}; only [N, ${side}, ${side}, 3] ` +
        `and [N, 3, ${side}, ${side}] are supported.`,
    )
  }
  const is_open = typeof batch !== "number" || batch < 1
  if (!is_open && batch !== 1) {
    return reject(
      `The ONNX model has the fixed batch size ${batch}: export it with a dynamic batch size.`,
    )
  }
  return {
    name: port.name,
    layout: is_nhwc ? "NHWC" : "NCHW",
    batch: is_open ? "any" : 1,
    has_rescaling: false,
  }
}

/** A gray image and a fixed pattern. */
const testImages = (layout: "NHWC" | "NCHW") => {
  const shape = layout === "NHWC" ? [1, side, side, 3] : [1, 3, side, side]
  const count = side * side * 3
  const pattern = Float32Array.from({ length: count }, (_, place) => ((place * 7919) % 256) / 255)
  return [new Float32Array(count).fill(0.5), pattern].map(
    (values) => new Tensor("float32", values, shape),
  )
}

const tolerance = 1e-3

const activationOf = (outputs: ReadonlyArray<Float32Array>, last_operation: string | undefined) => {
  const all = outputs.flatMap((result) => [...result])
  if (!all.every(Number.isFinite))
    return reject("The ONNX model returns a value that is not a number.")
  if (last_operation === "Sigmoid") return "sigmoid"
  if (all.some((value) => value < -tolerance || value > 1 + tolerance)) return "none"
  const sums_to_one = outputs.every(
    (answer) => Math.abs(answer.reduce((sum, value) => sum + value, 0) - 1) < tolerance,
  )
  return sums_to_one ? "softmax" : "none"
}

/** Opens and runs the model. Throws a ModelError or ONNX Runtime's error. */
export const prepareOnnx = async (path: string): Promise<PreparedModel> => {
  const session = await InferenceSession.create(path, {
    intraOpNumThreads: 1,
    interOpNumThreads: 1,
    logSeverityLevel: 4,
  })
  try {
    const input = inputOf(session.inputMetadata)
    const [name] = session.outputNames
    if (name === undefined) return reject("The ONNX model has no output.")
    const outputs: Array<Float32Array> = []
    for (const image of testImages(input.layout)) {
      const { [name]: answer } = await session.run({ [input.name]: image }, [name])
      if (answer?.type !== "float32" || answer.dims[0] !== 1) {
        return reject(`The ONNX model's output ${name} is not float32[N, classes].`)
      }
      // The type was checked above.
      outputs.push(answer.data as Float32Array)
    }
    return {
      input,
      output: { name, ...outputOf(outputs, outputOperation(path, name)) },
      parameters: null,
      layers: null,
    }
  } finally {
    await session.release()
  }
}

/** Describes the output. A single sigmoid is a classifier of two classes. */
const outputOf = (
  outputs: ReadonlyArray<Float32Array>,
  last_operation: string | undefined,
): Omit<PreparedModel["output"], "name"> => {
  const activation = activationOf(outputs, last_operation)
  const classes = outputs[0]?.length ?? 0
  if (classes > 1) return { classes, activation, is_softmax: activation === "softmax" }
  if (activation !== "sigmoid") {
    return reject("The ONNX model has one output, which is not a probability.")
  }
  return { classes: 2, activation: "softmax", is_softmax: true, is_single: true }
}
