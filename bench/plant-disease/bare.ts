/**
 * A thread that runs only a network, on ONNX Runtime or on tfjs, optionally with sharp decoding and
 * resizing an image before each run. It receives the number of seconds to run and responds with the
 * duration of each run in milliseconds.
 */
import { readFileSync } from "node:fs"
import { createRequire } from "node:module"
import { dirname, join } from "node:path"
import { parentPort, workerData } from "node:worker_threads"
import type { io } from "@tensorflow/tfjs-core"

export interface Bare {
  readonly runtime: "onnxruntime" | "tfjs"
  /** An .onnx file, or a model.json for tfjs. */
  readonly model_path: string
  readonly threads: number
  readonly batch: number
  /**
   * ONNX Runtime only: an image file to decode for each image of each run; if absent, the input is
   * prepared in advance.
   */
  readonly image?: Uint8Array
}

const side = 224

/** Prepares images as a simple service would: sharp's own cubic resize, and a loop. */
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

const onnxRuntime = async ({ model_path, threads, batch, image }: Bare) => {
  const { InferenceSession, Tensor } = await import("#onnx-runtime")
  const session = await InferenceSession.create(model_path, {
    intraOpNumThreads: threads,
    interOpNumThreads: 1,
    extra: { session: { intra_op: { allow_spinning: "0" } } },
  })
  const numbers = new Float32Array(batch * side * side * 3).fill(0.5)
  const [input = ""] = session.inputNames
  const tensor = new Tensor("float32", numbers, [batch, side, side, 3])
  const prepare = image === undefined ? undefined : await preparing(image, numbers, batch)
  return async () => {
    await prepare?.()
    await session.run({ [input]: tensor })
  }
}

const tfjs = async ({ model_path, batch }: Bare) => {
  const tf = await import("@tensorflow/tfjs-core")
  const { loadLayersModel } = await import("@tensorflow/tfjs-layers")
  const { setWasmPaths } = await import("@tensorflow/tfjs-backend-wasm")
  const main = createRequire(import.meta.url).resolve("@tensorflow/tfjs-backend-wasm")
  setWasmPaths(`${dirname(main)}/`)
  await tf.setBackend("wasm")
  // `network.ts` wrote this file through tfjs.
  const json = JSON.parse(readFileSync(model_path, "utf8")) as io.ModelJSON
  const artifacts = await tf.io.getModelArtifactsForJSON(json, async (manifest) => {
    const files = manifest.flatMap(({ paths }) => paths)
    const parts = files.map((file) => readFileSync(join(dirname(model_path), file)))
    const specs = manifest.flatMap(({ weights }) => weights)
    return [specs, Uint8Array.from(Buffer.concat(parts)).buffer]
  })
  const network = await loadLayersModel(tf.io.fromMemory(artifacts))
  const image = tf.fill([batch, side, side, 3], 0.5)
  return async () => {
    // The network has one input and one output.
    const answer = network.predict(image) as ReturnType<typeof tf.fill>
    await answer.data()
    answer.dispose()
  }
}

if (parentPort !== null) {
  const port = parentPort
  // `seats.ts` starts this thread.
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
