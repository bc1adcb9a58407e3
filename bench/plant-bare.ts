/**
 * A thread that runs a network and nothing else, on ONNX Runtime or on tfjs, or that has sharp
 * decode and resize an image for each run: told for how many seconds, it answers how long each run
 * took, in milliseconds.
 */
import { createRequire } from "node:module"
import { dirname } from "node:path"
import { parentPort, workerData } from "node:worker_threads"
import type { SymbolicTensor } from "@tensorflow/tfjs-layers"
import { mobilenet_blocks } from "./plant-network.ts"

export interface Bare {
  readonly runtime: "onnxruntime" | "tfjs"
  /** Of ONNX Runtime; tfjs builds MobileNetV2 itself. */
  readonly onnx_path: string
  readonly threads: number
  readonly batch: number
  /** Of ONNX Runtime: a file that becomes each image of each run; without, numbers are at hand. */
  readonly image?: Uint8Array
}

const side = 224
const classes = 38

/** What a service does in few lines: sharp's own cubic resize, and a loop. */
const preparing = async (image: Uint8Array, numbers: Float32Array, batch: number) => {
  const { default: sharp } = await import("sharp")
  const decoded = () =>
    sharp(image).resize(side, side, { fit: "fill", kernel: "cubic" }).removeAlpha().raw().toBuffer()
  return async () => {
    const all = await Promise.all(Array.from({ length: batch }, decoded))
    for (const [n, rgb] of all.entries()) {
      const at = n * rgb.length
      for (let i = 0; i < rgb.length; i++) numbers[at + i] = (rgb[i] ?? 0) / 255
    }
  }
}

const onnxRuntime = async ({ onnx_path, threads, batch, image }: Bare) => {
  const { InferenceSession, Tensor } = await import("onnxruntime-node")
  const session = await InferenceSession.create(onnx_path, {
    ...{ intraOpNumThreads: threads, interOpNumThreads: 1 },
    extra: { session: { intra_op: { allow_spinning: "0" } } },
  })
  const numbers = new Float32Array(batch * side * side * 3).fill(0.5)
  const x = new Tensor("float32", numbers, [batch, side, side, 3])
  const prepare = image === undefined ? undefined : await preparing(image, numbers, batch)
  return async () => {
    await prepare?.()
    await session.run({ x })
  }
}

const tfjs = async ({ batch }: Bare) => {
  const tf = await import("@tensorflow/tfjs-core")
  const { layers, input, model } = await import("@tensorflow/tfjs-layers")
  const { setWasmPaths } = await import("@tensorflow/tfjs-backend-wasm")
  const main = createRequire(import.meta.url).resolve("@tensorflow/tfjs-backend-wasm")
  setWasmPaths(`${dirname(main)}/`)
  await tf.setBackend("wasm")
  const apply = (layer: { apply: (from: SymbolicTensor) => unknown }, from: SymbolicTensor) =>
    // A layer applied to a symbol answers one.
    layer.apply(from) as SymbolicTensor
  const bounded = (from: SymbolicTensor) => apply(layers.reLU({ maxValue: 6 }), from)
  const point = (from: SymbolicTensor, filters: number) =>
    apply(layers.conv2d({ filters, kernelSize: 1, padding: "same" }), from)
  const x = input({ shape: [side, side, 3] })
  const first = layers.conv2d({ filters: 32, kernelSize: 3, strides: 2, padding: "same" })
  let at = bounded(apply(first, x))
  let channels = 32
  for (const [wider, outputs, count, first_stride] of mobilenet_blocks) {
    for (let n = 0; n < count; n++) {
      const wide = wider === 1 ? at : bounded(point(at, channels * wider))
      const strides = n === 0 ? first_stride : 1
      const deep = layers.depthwiseConv2d({ kernelSize: 3, strides, padding: "same" })
      const narrow = point(bounded(apply(deep, wide)), outputs)
      // Two symbols added are one.
      const sum = () => layers.add().apply([at, narrow]) as SymbolicTensor
      at = strides === 1 && channels === outputs ? sum() : narrow
      channels = outputs
    }
  }
  at = apply(layers.globalAveragePooling2d({}), bounded(point(at, 1280)))
  const softmax = layers.dense({ units: classes, activation: "softmax" })
  const network = model({ inputs: x, outputs: apply(softmax, at) })
  const image = tf.fill([batch, side, side, 3], 0.5)
  return async () => {
    // One input and one output.
    const answer = network.predict(image) as ReturnType<typeof tf.fill>
    await answer.data()
    answer.dispose()
  }
}

if (parentPort !== null) {
  const port = parentPort
  // `plant-seats.ts` starts this thread.
  const bare = workerData as Bare
  const run = await (bare.runtime === "tfjs" ? tfjs(bare) : onnxRuntime(bare))
  await run()
  const measure = async (seconds: number) => {
    const latencies: Array<number> = []
    const end = performance.now() + seconds * 1000
    while (performance.now() < end) {
      const began = performance.now()
      await run()
      latencies.push(performance.now() - began)
    }
    port.postMessage(latencies)
  }
  port.on("message", (seconds: number) => void measure(seconds))
  port.postMessage("ready")
}
