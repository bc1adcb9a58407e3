/**
 * Loads TensorFlow.js, a development dependency, and adds gradients of convolutions.
 *
 * Its WebAssembly backend has no gradient for the filter and a slow one for the input. Both can be
 * computed as convolutions, 3 to 5 times as fast. Source: plant facts 5.
 */
import type * as Core from "@tensorflow/tfjs-core"

export type Tensors = typeof Core

/** The error if TensorFlow.js is not installed. */
export const tensors_missing =
  "training needs the development packages: run `npm ci --ignore-scripts` in a checkout"

const attributes = (attrs: Core.NamedAttrMap | undefined, name: string) => {
  const value = attrs?.[name]
  return Array.isArray(value) ? value.map(Number) : [Number(value)]
}

const inputsOf = (tf: Tensors, inputs: Core.NamedTensorInfoMap, names: ReadonlyArray<string>) =>
  names.map((name) => {
    const info = inputs[name]
    if (info === undefined) throw new Error(`the kernel has no input ${name}`)
    // A convolution's inputs have rank 4 and type float32; the kernel's types do not say so.
    return tf.engine().makeTensorFromTensorInfo(info) as Core.Tensor4D
  })

/**
 * The filter's gradient: a convolution of the images with the output's gradient as filter, with
 * channels and batch swapped, and the stride as dilation.
 */
const filterGradient =
  (tf: Tensors): Core.KernelFunc =>
  ({ inputs, attrs }) =>
    tf.tidy(() => {
      const [x, dy] = inputsOf(tf, inputs, ["x", "dy"])
      if (x === undefined || dy === undefined) throw new Error("the kernel has no input")
      const [high = 1, wide = 1, channels = 1, filters = 1] = attributes(attrs, "filterShape")
      const [stride = 1] = attributes(attrs, "strides")
      const images: Core.Tensor4D = tf.transpose(x, [3, 1, 2, 0])
      const gradient: Core.Tensor4D = tf.transpose(dy, [1, 2, 0, 3])
      const all = tf.conv2d(images, gradient, 1, "valid", "NHWC", stride)
      const size = [channels, high, wide, filters]
      return tf.transpose(tf.slice(all, [0, 0, 0, 0], size), [1, 2, 0, 3])
    })

/** Inserts the zeros between rows and columns that undo a stride. */
const undoStride = (tf: Tensors, gradient: Core.Tensor4D, stride: number): Core.Tensor4D => {
  if (stride === 1) return gradient
  const [count, high, wide, filters] = gradient.shape
  const zeros: Array<[number, number]> = [
    [0, 0],
    [0, 0],
    [0, stride - 1],
    [0, 0],
  ]
  const rows = tf.pad(tf.reshape(gradient, [count, high, 1, wide * filters]), zeros)
  const cells: Core.Tensor4D = tf.reshape(rows, [count * high * stride, wide, 1, filters])
  const size_all: [number, number, number, number] = [count, high * stride, wide * stride, filters]
  const all: Core.Tensor4D = tf.reshape(tf.pad(cells, zeros), size_all)
  const size = [count, (high - 1) * stride + 1, (wide - 1) * stride + 1, filters]
  const result: Core.Tensor4D = tf.slice(all, [0, 0, 0, 0], size)
  return result
}

/** The input's gradient: a convolution of the output's, stride undone, with the flipped filter. */
const inputGradient =
  (tf: Tensors): Core.KernelFunc =>
  ({ inputs, attrs }) =>
    tf.tidy(() => {
      const [dy, filter] = inputsOf(tf, inputs, ["dy", "filter"])
      if (dy === undefined || filter === undefined) throw new Error("the kernel has no input")
      const [, image_high = 1, image_wide = 1] = attributes(attrs, "inputShape")
      const [stride = 1] = attributes(attrs, "strides")
      const [high, wide] = filter.shape
      const gradient = undoStride(tf, dy, stride)
      const flipped: Core.Tensor4D = tf.transpose(tf.reverse(filter, [0, 1]), [0, 1, 3, 2])
      const padded: Core.Tensor4D = tf.pad(gradient, [
        [0, 0],
        [high - 1, image_high - gradient.shape[1]],
        [wide - 1, image_wide - gradient.shape[2]],
        [0, 0],
      ])
      return tf.conv2d(padded, flipped, 1, "valid")
    })

const backendName = "wasm"

const isMissing = (error: unknown) =>
  error instanceof Error && "code" in error && error.code === "ERR_MODULE_NOT_FOUND"

const open = async (): Promise<Tensors> => {
  const tf = await import("@tensorflow/tfjs-core")
  await import("@tensorflow/tfjs-backend-wasm")
  // Imported for its side effect: it registers the gradients.
  await import("@tensorflow/tfjs-layers")
  await tf.setBackend(backendName)
  await tf.ready()
  const filter = "Conv2DBackpropFilter"
  const input = "Conv2DBackpropInput"
  if (tf.getKernel(filter, backendName) != null) tf.unregisterKernel(filter, backendName)
  tf.unregisterKernel(input, backendName)
  tf.registerKernel({ kernelName: filter, backendName, kernelFunc: filterGradient(tf) })
  tf.registerKernel({ kernelName: input, backendName, kernelFunc: inputGradient(tf) })
  return tf
}

/** Loads TensorFlow.js for convolutions without padding. Throws `tensors_missing`. */
export const openTensors = async () => {
  try {
    return await open()
  } catch (error) {
    throw isMissing(error) ? new Error(tensors_missing, { cause: error }) : error
  }
}
