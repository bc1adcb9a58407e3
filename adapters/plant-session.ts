/**
 * One session of ONNX Runtime: batches of tensors become probabilities. It holds up the thread that
 * calls it for as long as the network runs. Source: plant facts 2; decision 0102.
 */
import { InferenceSession, Tensor } from "onnxruntime-node"
import type { Network } from "#adapters/plant-protocol.ts"
import { side } from "#schemas/plant-disease/side.ts"

/** Numbers of one image: 224 by 224 pixels of three colours. */
export const tensor_length = side * side * 3

export interface Session {
  /** As many answers as tensors: probabilities, or what is wrong with the network's output. */
  readonly run: (
    tensors: ReadonlyArray<Float32Array>,
  ) => Promise<ReadonlyArray<Float32Array | string>>
  readonly end: () => Promise<void>
}

export interface SessionOptions {
  readonly network: Network
  readonly threads: number
  readonly batch_max: number
}

/** Of numbers that are probabilities to the last bit but these. */
const tolerance = 1e-3

/** Opens the network and runs it once, or twice; rejects where that does not work. */
export const openSession = async ({
  network,
  threads,
  batch_max,
}: SessionOptions): Promise<Session> => {
  const { input, output, onnx_path } = network
  const session = await InferenceSession.create(onnx_path, {
    intraOpNumThreads: threads,
    interOpNumThreads: 1,
    graphOptimizationLevel: "all",
    // A thread that waits must not keep a core busy, which others need.
    extra: { session: { intra_op: { allow_spinning: "0" } } },
    logSeverityLevel: 4,
  })
  const batch = new Float32Array(batch_max * tensor_length)
  const dims = input.layout === "NHWC" ? [side, side, 3] : [3, side, side]
  const put = input.layout === "NHWC" ? putAsIs : putTransposed

  const runTogether = async (tensors: ReadonlyArray<Float32Array>) => {
    for (const [n, tensor] of tensors.entries()) put(tensor, batch, n * tensor_length)
    const numbers = batch.subarray(0, tensors.length * tensor_length)
    const feed = new Tensor("float32", numbers, [tensors.length, ...dims])
    const { [output.name]: out } = await session.run({ [input.name]: feed }, [output.name])
    return { out, answers: answersOf(out, tensors.length, output) }
  }
  let together_max = batch_max
  const run = async (tensors: ReadonlyArray<Float32Array>) => {
    const answers: Array<Float32Array | string> = []
    for (let from = 0; from < tensors.length; from += together_max) {
      const some = tensors.slice(from, from + together_max)
      answers.push(...(await runTogether(some)).answers)
    }
    return answers
  }

  const blank = new Float32Array(tensor_length)
  const { out, answers } = await runTogether([blank])
  if (out === undefined || answers.some((answer) => answer === wrong_size)) {
    await session.release()
    throw new Error(`Its output is no float32[1, ${output.classes}].`)
  }
  // Some networks say that they take any number of images, and take one.
  if (batch_max > 1 && !(await takesTwo(() => runTogether([blank, blank])))) together_max = 1
  return { run, end: () => session.release() }
}

const takesTwo = async (
  run: () => Promise<{ answers: ReadonlyArray<Float32Array | string> }>,
): Promise<boolean> => {
  try {
    return (await run()).answers.every((answer) => answer !== wrong_size)
  } catch {
    return false
  }
}

const putAsIs = (tensor: Float32Array, batch: Float32Array, at: number) => batch.set(tensor, at)

/** Pixels of three colours become three planes. */
const putTransposed = (tensor: Float32Array, batch: Float32Array, at: number) => {
  const plane = side * side
  for (let i = 0; i < plane; i++) {
    batch[at + i] = tensor[i * 3] ?? 0
    batch[at + plane + i] = tensor[i * 3 + 1] ?? 0
    batch[at + 2 * plane + i] = tensor[i * 3 + 2] ?? 0
  }
}

const wrong_size = "The network answered no row of as many numbers as there are classes."

const answersOf = (
  out: Tensor | undefined,
  count: number,
  { classes, activation }: Network["output"],
): ReadonlyArray<Float32Array | string> => {
  const rows = Array.from({ length: count }, (_, n) => n)
  const data = out?.data
  if (!(data instanceof Float32Array) || data.length !== count * classes) {
    return rows.map(() => wrong_size)
  }
  return rows.map((n) => {
    const row = data.slice(n * classes, (n + 1) * classes)
    if (!row.every(Number.isFinite)) return "The network answered what is no number."
    if (activation === "none") return softmax(row)
    const is_possible = row.every((one) => one >= -tolerance && one <= 1 + tolerance)
    return is_possible ? row : "The network answered what is no probability."
  })
}

const softmax = (row: Float32Array): Float32Array => {
  const most = row.reduce((one, other) => Math.max(one, other))
  const powers = Float64Array.from(row, (one) => Math.exp(one - most))
  const total = powers.reduce((one, other) => one + other)
  return Float32Array.from(powers, (one) => one / total)
}
