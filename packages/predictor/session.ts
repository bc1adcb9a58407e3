/**
 * One session of ONNX Runtime: batches of tensors become probabilities. It holds up the thread that
 * calls it for as long as the network runs. Source: plant facts 2; decision 0102.
 */
import { InferenceSession, Tensor } from "onnxruntime-node"
import { side } from "#schemas/image-side.ts"
import { fastestBatch } from "./batch.ts"
import { type Input, type Network, type Scale, tensor_length } from "./protocol.ts"
import { scaler } from "./scale.ts"

export interface Session {
  /** As many answers as inputs: probabilities, or what is wrong with the network's output. */
  readonly run: (inputs: ReadonlyArray<Input>) => Promise<ReadonlyArray<Float32Array | string>>
  /** How many images it takes at once where it is fastest; more are run one batch after another. */
  readonly batch: number
  readonly end: () => Promise<void>
}

export interface SessionOptions {
  readonly network: Network
  readonly threads: number
  readonly batch_max: number
  /** What bytes become; tensors are taken as they are. */
  readonly scale?: Scale
}

/** Of numbers that are probabilities to the last bit but these. */
const tolerance = 1e-3

/** Opens the network and tries it, alone and in batches; rejects where it does not work. */
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
    // A thread that waits must not keep a core busy, which others need.
    extra: { session: { intra_op: { allow_spinning: "0" } } },
    logSeverityLevel: 4,
  })
  const { numbers, put: putBytes } = scaler(scale, input.layout, side * side, batch_max)
  const dims = input.layout === "NHWC" ? [side, side, 3] : [3, side, side]
  const putTensor = input.layout === "NHWC" ? putAsIs : putTransposed

  const runTogether = async (inputs: ReadonlyArray<Input>) => {
    for (const [n, one] of inputs.entries()) {
      if (one instanceof Uint8Array) putBytes(one, n)
      else putTensor(one, numbers, n * tensor_length)
    }
    const given = numbers.subarray(0, inputs.length * tensor_length)
    const feed = new Tensor("float32", given, [inputs.length, ...dims])
    const { [output.name]: out } = await session.run({ [input.name]: feed }, [output.name])
    return { out, answers: answersOf(out, inputs.length, output) }
  }

  const blank = new Uint8Array(tensor_length)
  const { out, answers } = await runTogether([blank])
  const [first = wrong_size] = answers
  const wrong = out === undefined ? wrong_size : first
  if (typeof wrong === "string") {
    await session.release()
    // Else each image would be told that the network failed on it.
    throw new Error(
      wrong === wrong_size ? `Its output is no float32[1, ${numbersOf(output)}].` : wrong,
    )
  }
  // Some networks say that they take any number of images, and take one.
  const is_single = batch_max === 1 || !(await takesTwo(() => runTogether([blank, blank])))
  const blanks = Array.from({ length: batch_max }, () => blank)
  const runBlank = (count: number) => runTogether(blanks.slice(0, count))
  const batch = is_single ? 1 : await fastestBatch(runBlank, batch_max)
  const run = async (inputs: ReadonlyArray<Input>) => {
    const answers: Array<Float32Array | string> = []
    for (let from = 0; from < inputs.length; from += batch) {
      const some = inputs.slice(from, from + batch)
      answers.push(...(await runTogether(some)).answers)
    }
    return answers
  }
  return { run, batch, end: () => session.release() }
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

/** How many numbers of an image come out. */
const numbersOf = ({ classes, is_single }: Network["output"]) => (is_single === true ? 1 : classes)

const answersOf = (
  out: Tensor | undefined,
  count: number,
  output: Network["output"],
): ReadonlyArray<Float32Array | string> => {
  const { activation, is_single } = output
  const length = numbersOf(output)
  const rows = Array.from({ length: count }, (_, n) => n)
  const data = out?.data
  if (!(data instanceof Float32Array) || data.length !== count * length) {
    return rows.map(() => wrong_size)
  }
  return rows.map((n) => {
    const row = data.slice(n * length, (n + 1) * length)
    if (!row.every(Number.isFinite)) return "The network answered what is no number."
    if (activation === "none") return softmax(row)
    const is_possible = row.every((one) => one >= -tolerance && one <= 1 + tolerance)
    if (!is_possible) return "The network answered what is no probability."
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
