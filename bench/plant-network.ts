/** Networks of known shape and random weights, as ONNX files: what they cost is what counts. */
import { type Constant, type Operation, writeOnnx } from "#adapters/plant-onnx-writer.ts"
import type { Weight } from "#adapters/plant-weight.ts"

const side = 224
export const classes = 38
const part_values = 2 ** 20

/** Pseudo-random weights of a spread that keeps what flows through in its bounds. */
const weights = (shape: ReadonlyArray<number>, fan: number, seed: number): Weight => ({
  shape,
  *parts() {
    let state = seed + 1
    let left = shape.reduce((product, one) => product * one, 1)
    const scale = 2 * Math.sqrt(3 / fan)
    while (left > 0) {
      const part = new Float32Array(Math.min(left, part_values))
      for (let i = 0; i < part.length; i++) {
        state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0
        part[i] = (state / 2 ** 32 - 0.5) * scale
      }
      left -= part.length
      yield part
    }
  },
})

/** Collects operations one after the other; each method answers the name of what it makes. */
const builder = () => {
  const operations: Array<Operation> = []
  const constants: Array<Constant> = []
  const add = (
    type: string,
    inputs: ReadonlyArray<string>,
    attributes: Operation["attributes"] = {},
  ) => {
    const output = `t${operations.length}`
    operations.push({ type, inputs, outputs: [output], attributes })
    return output
  }
  const weight = (shape: ReadonlyArray<number>, fan: number) => {
    const name = `w${constants.length}`
    constants.push({ name, weight: weights(shape, fan, constants.length) })
    return name
  }
  const scalar = (name: string, value: number) => {
    constants.push({ name, weight: { shape: [], parts: () => [Float32Array.of(value)] } })
    return name
  }
  const dense = (from: string, inputs: number, outputs: number) =>
    add("Gemm", [from, weight([inputs, outputs], inputs), weight([outputs], 1e4)])
  const finish = (path: string, from: string) => {
    operations.push({ type: "Softmax", inputs: [from], outputs: ["y"], attributes: { axis: -1 } })
    writeOnnx(path, {
      ...{ operations, constants },
      input: { name: "x", sides: ["N", side, side, 3] },
      outputs: [{ name: "y", sides: ["N", classes] }],
    })
  }
  return { add, weight, scalar, dense, finish }
}

/** The tutorial's network: 47.8 million weights, nearly all in one layer. Plant facts 1. */
export const writeTutorial = (path: string) => {
  const { add, weight, dense, finish } = builder()
  let at = add("Transpose", ["x"], { perm: [0, 3, 1, 2] })
  for (const [inputs, outputs] of [
    [3, 32],
    [32, 64],
  ] as const) {
    const kernel = weight([outputs, inputs, 3, 3], inputs * 9)
    at = add("Conv", [at, kernel, weight([outputs], 1e4)], { kernel_shape: [3, 3] })
    at = add("MaxPool", [add("Relu", [at])], { kernel_shape: [2, 2], strides: [2, 2] })
  }
  const flat = add("Flatten", [add("Transpose", [at], { perm: [0, 2, 3, 1] })], { axis: 1 })
  const hidden = add("Relu", [dense(flat, 54 * 54 * 64, 256)])
  finish(path, dense(hidden, 256, classes))
}

/** Of MobileNetV2: how much wider inside, channels, how often, stride of the first. */
export const mobilenet_blocks = [
  [1, 16, 1, 1],
  [6, 24, 2, 2],
  [6, 32, 3, 2],
  [6, 64, 4, 2],
  [6, 96, 3, 1],
  [6, 160, 3, 2],
  [6, 320, 1, 1],
] as const

/** MobileNetV2 with 38 classes, its normalizations folded into its convolutions. */
export const writeMobileNet = (path: string) => {
  const { add, weight, scalar, dense, finish } = builder()
  const bounds = [scalar("zero", 0), scalar("six", 6)]
  const convolve = (from: string, inputs: number, outputs: number, size: number, stride = 1) => {
    const group = size === 3 && inputs === outputs ? inputs : 1
    const depth = inputs / group
    const kernel = weight([outputs, depth, size, size], depth * size * size)
    const pads = size === 1 ? [0, 0, 0, 0] : stride === 2 ? [0, 0, 1, 1] : [1, 1, 1, 1]
    return add("Conv", [from, kernel, weight([outputs], 1e4)], {
      ...{ kernel_shape: [size, size], strides: [stride, stride], group, pads },
    })
  }
  const bounded = (from: string) => add("Clip", [from, ...bounds])
  let at = add("Transpose", ["x"], { perm: [0, 3, 1, 2] })
  at = bounded(convolve(at, 3, 32, 3, 2))
  let channels = 32
  for (const [wider, outputs, count, first_stride] of mobilenet_blocks) {
    for (let n = 0; n < count; n++) {
      const inner = channels * wider
      const wide = wider === 1 ? at : bounded(convolve(at, channels, inner, 1))
      const stride = n === 0 ? first_stride : 1
      const deep = bounded(convolve(wide, inner, inner, 3, stride))
      const narrow = convolve(deep, inner, outputs, 1)
      at = stride === 1 && channels === outputs ? add("Add", [at, narrow]) : narrow
      channels = outputs
    }
  }
  at = bounded(convolve(at, 320, 1280, 1))
  const pooled = add("Flatten", [add("GlobalAveragePool", [at])], { axis: 1 })
  finish(path, dense(pooled, 1280, classes))
}
