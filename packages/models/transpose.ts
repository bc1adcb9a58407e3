/** Transposes weights from Keras's order of axes to ONNX's. */
import { elementCount, readValues, type Weight } from "./weight.ts"

/** A kernel [height, width, in, out] as [out, in, height, width]. */
export const toOnnxKernel = (weight: Weight): Weight => transpose(weight, [3, 2, 0, 1])

/** A tensor with its axes permuted. It is held in memory as a whole while it is read. */
export const transpose = (weight: Weight, order: ReadonlyArray<number>): Weight => {
  const shape = order.map((axis) => weight.shape[axis] ?? 1)
  return {
    shape,
    *parts() {
      const values = readValues(weight)
      const strides = weight.shape.map((_, axis) => elementCount(weight.shape.slice(axis + 1)))
      const steps = order.map((axis) => strides[axis] ?? 1)
      yield gather(values, shape, steps)
    },
  }
}

const gather = (
  values: Float32Array,
  shape: ReadonlyArray<number>,
  steps: ReadonlyArray<number>,
) => {
  const result = new Float32Array(values.length)
  const position = shape.map(() => 0)
  let from = 0
  for (let index = 0; index < result.length; index++) {
    result[index] = values[from] ?? 0
    for (let axis = shape.length - 1; axis >= 0; axis--) {
      const step = steps[axis] ?? 0
      const next = (position[axis] ?? 0) + 1
      from += step
      if (next < (shape[axis] ?? 1)) {
        position[axis] = next
        break
      }
      from -= step * next
      position[axis] = 0
    }
  }
  return result
}
