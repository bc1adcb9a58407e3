/** Weights with their axes in the order that ONNX has them in. */
import { countOf, valuesOf, type Weight } from "./weight.ts"

/** A tensor of [height, width, in, out] as [out, in, height, width]. */
export const kernelFirst = (weight: Weight): Weight => permuted(weight, [3, 2, 0, 1])

/** A tensor with its axes in another order; it is held whole while it is read. */
export const permuted = (weight: Weight, order: ReadonlyArray<number>): Weight => {
  const shape = order.map((axis) => weight.shape[axis] ?? 1)
  return {
    shape,
    *parts() {
      const values = valuesOf(weight)
      const strides = weight.shape.map((_, axis) => countOf(weight.shape.slice(axis + 1)))
      const steps = order.map((axis) => strides[axis] ?? 1)
      yield gathered(values, shape, steps)
    },
  }
}

const gathered = (
  values: Float32Array,
  shape: ReadonlyArray<number>,
  steps: ReadonlyArray<number>,
) => {
  const result = new Float32Array(values.length)
  const index = shape.map(() => 0)
  let from = 0
  for (let place = 0; place < result.length; place++) {
    result[place] = values[from] ?? 0
    for (let axis = shape.length - 1; axis >= 0; axis--) {
      const step = steps[axis] ?? 0
      const next = (index[axis] ?? 0) + 1
      from += step
      if (next < (shape[axis] ?? 1)) {
        index[axis] = next
        break
      }
      from -= step * next
      index[axis] = 0
    }
  }
  return result
}
