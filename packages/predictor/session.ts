/**
 * A session of ONNX Runtime that returns probabilities. Blocks its thread while the network runs.
 * Source: plant facts 2; decision 0102.
 */
import { InferenceSession, Tensor } from "#onnx-runtime"
import { side } from "#schemas/image-side.ts"
import { fastestBatch } from "./batch.ts"
import { type Input, type Network, type Scale, tensor_length } from "./protocol.ts"
import { scaler } from "./scale.ts"

export interface Session {
  /** For each input, probabilities or an error. */
  readonly run: (inputs: ReadonlyArray<Input>) => Promise<ReadonlyArray<Float32Array | string>>
  /** The fastest batch size. More inputs are run in several batches. */
  readonly batch: number
  readonly end: () => Promise<void>
}

export interface SessionOptions {
  readonly network: Network
  readonly threads: number
  readonly batch_max: number
  /** The scaling of bytes; tensors are not scaled. */
  readonly scale?: Scale
}

/** Rounding errors allowed in a probability. */
const tolerance = 1e-3

/** Opens the network and tests it with one image and with batches. Rejects if it does not work. */
export const openSession = async ({
  network,
  threads,
  batch_max,
  scale = "0..1",
}: SessionOptions): Promise<Session> => {
  const { input, output, onnx_path } = network
  const session = await InferenceSession.create(onnx_path, {
    intraOpNumThreads: threads,
    interOpNumThreads: 1,
    graphOptimizationLevel: "all",
    // Waiting threads must not spin: other threads need the cores.
    extra: { session: { intra_op: { allow_spinning: "0" } } },
    logSeverityLevel: 4,
  })
  const { numbers, put: putBytes } = scaler(scale, input.layout, side * side, batch_max)
  const dims = input.layout === "NHWC" ? [side, side, 3] : [3, side, side]
  const putTensor = input.layout === "NHWC" ? copyTensor : copyTransposed

  const runBatch = async (inputs: ReadonlyArray<Input>) => {
    for (const [n, one] of inputs.entries()) {
      if (one instanceof Uint8Array) putBytes(one, n)
      else putTensor(one, numbers, n * tensor_length)
    }
    const given = numbers.subarray(0, inputs.length * tensor_length)
    const feed = new Tensor("float32", given, [inputs.length, ...dims])
    const { [output.name]: out } = await session.run({ [input.name]: feed }, [output.name])
    return { out, rows: toProbabilities(out, inputs.length, output) }
  }

  const blank = new Uint8Array(tensor_length)
  const { out, rows } = await runBatch([blank])
  const [first = wrong_size] = rows
  const wrong = out === undefined ? wrong_size : first
  if (typeof wrong === "string") {
    await session.release()
    // Otherwise every image would fail with this error.
    throw new Error(
      wrong === wrong_size ? `Its output is not float32[1, ${outputLength(output)}].` : wrong,
    )
  }
  // Some networks declare a dynamic batch but support only one image.
  const is_single = batch_max === 1 || !(await supportsBatches(() => runBatch([blank, blank])))
  const blanks = Array.from({ length: batch_max }, () => blank)
  const runBlank = (count: number) => runBatch(blanks.slice(0, count))
  const batch = is_single ? 1 : await fastestBatch(runBlank, batch_max)
  const run = async (inputs: ReadonlyArray<Input>) => {
    const rows: Array<Float32Array | string> = []
    for (let from = 0; from < inputs.length; from += batch) {
      const part = inputs.slice(from, from + batch)
      rows.push(...(await runBatch(part)).rows)
    }
    return rows
  }
  return { run, batch, end: () => session.release() }
}

const supportsBatches = async (
  run: () => Promise<{ rows: ReadonlyArray<Float32Array | string> }>,
): Promise<boolean> => {
  try {
    return (await run()).rows.every((answer) => answer !== wrong_size)
  } catch {
    return false
  }
}

const copyTensor = (tensor: Float32Array, batch: Float32Array, at: number) => batch.set(tensor, at)

/** Copies NHWC to NCHW. */
const copyTransposed = (tensor: Float32Array, batch: Float32Array, at: number) => {
  const plane = side * side
  for (let i = 0; i < plane; i++) {
    batch[at + i] = tensor[i * 3] ?? 0
    batch[at + plane + i] = tensor[i * 3 + 1] ?? 0
    batch[at + 2 * plane + i] = tensor[i * 3 + 2] ?? 0
  }
}

const wrong_size = "The network returned a row with the wrong number of classes."

/** Output values per image. */
const outputLength = ({ classes, is_single }: Network["output"]) =>
  is_single === true ? 1 : classes

const toProbabilities = (
  out: Tensor | undefined,
  count: number,
  output: Network["output"],
): ReadonlyArray<Float32Array | string> => {
  const { activation, is_single } = output
  const length = outputLength(output)
  const indices = Array.from({ length: count }, (_, n) => n)
  const data = out?.data
  if (!(data instanceof Float32Array) || data.length !== count * length) {
    return indices.map(() => wrong_size)
  }
  return indices.map((n) => {
    const row = data.slice(n * length, (n + 1) * length)
    if (!row.every(Number.isFinite)) return "The network returned a value that is not a number."
    if (activation === "none") return softmax(row)
    const is_possible = row.every((one) => one >= -tolerance && one <= 1 + tolerance)
    if (!is_possible) return "The network returned a value that is not a probability."
    const [second = 0] = row
    return is_single === true ? Float32Array.of(1 - second, second) : row
  })
}

const softmax = (row: Float32Array): Float32Array => {
  const most = row.reduce((one, other) => Math.max(one, other))
  const powers = Float64Array.from(row, (one) => Math.exp(one - most))
  const total = powers.reduce((one, other) => one + other)
  return Float32Array.from(powers, (one) => one / total)
}
