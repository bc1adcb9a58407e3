/**
 * Trains the small network on pictures, epoch by epoch, and asks it about pictures.
 *
 * Deterministic by seed but for the order in which WebAssembly adds, which is the same on one
 * machine. Source: issue 7, demo model; plant facts 5.
 */
import type * as Core from "@tensorflow/tfjs-core"
import { adamOf, rateAt } from "./adam.ts"
import { randomOf, seedOf, shuffled } from "./leaves/noise.ts"
import { initialWeights, logitsOf, type Network, trained_side, type Weight } from "./network.ts"
import { type Pictures, picture_bytes, writePlain, writeVaried } from "./pictures.ts"
import type { Tensors } from "./tensors.ts"

export interface TrainOptions {
  readonly network: Network
  readonly seed: number
  readonly epochs: number
  /** How often an epoch goes over its pictures, each time varied anew. */
  readonly passes: number
  /** Pictures of an epoch; asked for one epoch ahead, so that they can be made meanwhile. */
  readonly pictures: (epoch: number) => Promise<Pictures>
  readonly onBatch: (epoch: number, done: number, total: number) => void
  readonly onEpoch: (epoch: number, loss: number, weights: ReadonlyArray<Weight>) => Promise<void>
}

/** Pictures that are averaged before the weights move. */
export const batch_pictures = 32
/** How far a weight moves at most in a step, at the height of the rate. */
const rate_max = 1.5e-3
/** What is kept from the true class for the others: a network that is sure learns no more. */
const smoothing = 0.03

const yielded = () => new Promise<void>((resume) => void setImmediate(resume))

interface Batch {
  readonly images: Float32Array
  readonly labels: Int32Array
}

const lossOf = (tf: Tensors, network: Network, weights: ReadonlyArray<Core.Tensor>, batch: Batch) =>
  tf.tidy(() => {
    const count = batch.labels.length
    const images = tf.tensor4d(batch.images, [count, trained_side, trained_side, 3])
    const wanted = tf.oneHot(tf.tensor1d(batch.labels, "int32"), network.classes)
    const logits = logitsOf(tf, network, weights, images)
    const likely = tf.logSoftmax(logits)
    const soft = tf.add(
      tf.mul(tf.cast(wanted, "float32"), 1 - smoothing),
      smoothing / network.classes,
    )
    const scalar: Core.Scalar = tf.neg(tf.mean(tf.sum(tf.mul(soft, likely), 1)))
    return scalar
  })

/** The loss of a batch, and its gradient by each weight, in their order. */
export const gradientsOf = (
  tf: Tensors,
  network: Network,
  weights: ReadonlyArray<Weight>,
  batch: Batch,
) =>
  tf.tidy(() => {
    const given = weights.map(({ values, shape }) => tf.tensor(values, [...shape]))
    const derive = tf.valueAndGrads((...tensors: Array<Core.Tensor>) =>
      lossOf(tf, network, tensors, batch),
    )
    const { value, grads } = derive(given)
    // Weights and gradients are float32 throughout.
    const numbers = grads.map((gradient) => gradient.dataSync() as Float32Array)
    return { loss: value.dataSync()[0] ?? Number.NaN, gradients: numbers }
  })

/** Trains from random weights; answers the weights of the last epoch. */
export const train = async (tf: Tensors, options: TrainOptions): Promise<ReadonlyArray<Weight>> => {
  const { network, seed, epochs, passes } = options
  const weights = initialWeights(network, randomOf(seedOf(seed, 0)))
  const adam = adamOf(weights.map(({ values }) => values.length))
  const values = weights.map((weight) => weight.values)
  let next = options.pictures(0)
  let step = 0
  for (let epoch = 0; epoch < epochs; epoch++) {
    const pictures = await next
    if (epoch + 1 < epochs) {
      next = options.pictures(epoch + 1)
      // It is awaited an epoch later: until then a failure is nobody's.
      next.catch(() => undefined)
    }
    const random = randomOf(seedOf(seed, epoch + 1))
    // The last few that fill no batch wait for the next pass; fewer than a batch are one.
    const per_pass = Math.max(1, Math.floor(pictures.labels.length / batch_pictures))
    const total = per_pass * passes
    let loss = 0
    for (let pass = 0; pass < passes; pass++) {
      const order = shuffled(random, pictures.labels.length)
      for (let i = 0; i < per_pass; i++) {
        const chosen = order.subarray(i * batch_pictures, (i + 1) * batch_pictures)
        const batch = batchOf(pictures, chosen, (picture, to, at) =>
          writeVaried(picture, to, at, random),
        )
        const derived = gradientsOf(tf, network, weights, batch)
        adam.step(values, derived.gradients, rate_max * rateAt(step++, epochs * total))
        loss += derived.loss / total
        options.onBatch(epoch, pass * per_pass + i + 1, total)
        await yielded()
      }
    }
    if (!Number.isFinite(loss)) throw new Error("the training diverged: try another --seed")
    await options.onEpoch(epoch, loss, weights)
  }
  return weights
}

const batchOf = (
  pictures: Pictures,
  chosen: ArrayLike<number>,
  write: (picture: Uint8Array, to: Float32Array, at: number) => void,
): Batch => {
  const images = new Float32Array(chosen.length * picture_bytes)
  const labels = new Int32Array(chosen.length)
  for (let i = 0; i < chosen.length; i++) {
    const index = chosen[i] ?? 0
    write(pictures.at(index), images, i * picture_bytes)
    labels[i] = pictures.labels[index] ?? 0
  }
  return { images, labels }
}

/** Probabilities of each picture, one row of `classes` after the other. */
export const probabilitiesOf = async (
  tf: Tensors,
  network: Network,
  weights: ReadonlyArray<Weight>,
  pictures: Pictures,
) => {
  const count = pictures.labels.length
  const all = new Float32Array(count * network.classes)
  for (let from = 0; from < count; from += batch_pictures) {
    const length = Math.min(batch_pictures, count - from)
    const chosen = Uint32Array.from({ length }, (_, i) => from + i)
    const { images } = batchOf(pictures, chosen, writePlain)
    const rows = tf.tidy(() => {
      const given = weights.map(({ values, shape }) => tf.tensor(values, [...shape]))
      const input = tf.tensor4d(images, [length, trained_side, trained_side, 3])
      return tf.softmax(logitsOf(tf, network, given, input)).dataSync()
    })
    all.set(rows, from * network.classes)
    await yielded()
  }
  return all
}
