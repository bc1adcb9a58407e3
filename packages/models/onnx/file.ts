/**
 * An `.onnx` as it was handed in: ONNX Runtime opens it, and a dry run tells what it answers; of a
 * sigmoid that makes the answers the file does.
 *
 * It blocks its thread for as long as that takes. Source: plant facts 2.
 */
import { InferenceSession, Tensor } from "onnxruntime-node"
import { side } from "#schemas/image-side.ts"
import type { Prepared } from "../prepared.ts"
import { unusable } from "../refusal.ts"
import { onnxEnding } from "./ending.ts"

type Port = InferenceSession.ValueMetadata

/** The sides of its one input, in either order of the axes, with an open batch or a batch of 1. */
const inputOf = (ports: ReadonlyArray<Port>): Prepared["input"] => {
  const [port] = ports
  if (port === undefined || ports.length > 1 || !port.isTensor) {
    return unusable(`The ONNX model has ${ports.length} inputs, and one image is served.`)
  }
  const [batch, ...sides] = port.shape
  const told = `[${port.shape.join(", ")}]`
  if (port.type !== "float32") {
    return unusable(`The ONNX model takes ${port.type}, and float32 is served.`)
  }
  const has = (...wanted: ReadonlyArray<number>) =>
    sides.length === 3 &&
    sides.every((is, axis) => typeof is !== "number" || is < 1 || is === wanted[axis]) &&
    sides.includes(3)
  const is_nhwc = has(side, side, 3)
  if (!is_nhwc && !has(3, side, side)) {
    return unusable(
      `The ONNX model takes a tensor of ${told}, and what is served is [N, ${side}, ${side}, 3] ` +
        `or [N, 3, ${side}, ${side}].`,
    )
  }
  const is_open = typeof batch !== "number" || batch < 1
  if (!is_open && batch !== 1) {
    return unusable(`The ONNX model takes ${batch} images at once: export it with an open batch.`)
  }
  return {
    name: port.name,
    layout: is_nhwc ? "NHWC" : "NCHW",
    batch: is_open ? "any" : 1,
    has_rescaling: false,
  }
}

/** Gray, and a pattern that is the same each time. */
const images = (layout: "NHWC" | "NCHW") => {
  const shape = layout === "NHWC" ? [1, side, side, 3] : [1, 3, side, side]
  const count = side * side * 3
  const pattern = Float32Array.from({ length: count }, (_, place) => ((place * 7919) % 256) / 255)
  return [new Float32Array(count).fill(0.5), pattern].map(
    (values) => new Tensor("float32", values, shape),
  )
}

const rounding = 1e-3

const activationOf = (answers: ReadonlyArray<Float32Array>, ending: string | undefined) => {
  const all = answers.flatMap((answer) => [...answer])
  if (!all.every(Number.isFinite)) return unusable("The ONNX model answers what is no number.")
  if (ending === "Sigmoid") return "sigmoid"
  if (all.some((value) => value < -rounding || value > 1 + rounding)) return "none"
  const is_shared = answers.every(
    (answer) => Math.abs(answer.reduce((sum, value) => sum + value, 0) - 1) < rounding,
  )
  return is_shared ? "softmax" : "none"
}

/** Opens and tries the model. Throws a refusal, or what ONNX Runtime says of it. */
export const prepareOnnx = async (path: string): Promise<Prepared> => {
  const session = await InferenceSession.create(path, {
    intraOpNumThreads: 1,
    interOpNumThreads: 1,
    logSeverityLevel: 4,
  })
  try {
    const input = inputOf(session.inputMetadata)
    const [name] = session.outputNames
    if (name === undefined) return unusable("The ONNX model has no output.")
    const answers: Array<Float32Array> = []
    for (const image of images(input.layout)) {
      const { [name]: answer } = await session.run({ [input.name]: image }, [name])
      if (answer?.type !== "float32" || answer.dims[0] !== 1) {
        return unusable(`The ONNX model's output ${name} is no float32[N, classes].`)
      }
      // The type above says so.
      answers.push(answer.data as Float32Array)
    }
    return {
      input,
      output: { name, ...outputOf(answers, onnxEnding(path, name)) },
      parameters: null,
      layers: null,
    }
  } finally {
    await session.release()
  }
}

/** What the outputs are, as of a Keras network: a single sigmoid is of two classes. */
const outputOf = (
  answers: ReadonlyArray<Float32Array>,
  ending: string | undefined,
): Omit<Prepared["output"], "name"> => {
  const activation = activationOf(answers, ending)
  const classes = answers[0]?.length ?? 0
  if (classes > 1) return { classes, activation, is_softmax: activation === "softmax" }
  if (activation !== "sigmoid") {
    return unusable("The ONNX model has one output, and that is no probability.")
  }
  return { classes: 2, activation: "softmax", is_softmax: true, is_single: true }
}
