/**
 * Trains the network and runs it on pictures.
 *
 * Deterministic for a seed on one machine; other machines may sum in another order. Source: issue
 * 7, demo model; plant facts 5.
 */
import type * as Core from "@tensorflow/tfjs-core"
import { adamOf, rateAt } from "./adam.ts"
import { randomOf, seedOf, shuffled } from "./leaves/noise.ts"
import { initialWeights, logitsOf, type Network, trained_side, type Weight } from "./network.ts"
import { type Pictures, picture_bytes, writeAugmented, writeNormalized } from "./pictures.ts"
import type { Tensors } from "./tensors.ts"

export interface TrainOptions {
  readonly network: Network
  readonly seed: number
  readonly epochs: number
  /** Passes over the pictures of an epoch, each with new augmentation. */
  readonly passes: number
  /** The pictures of an epoch, requested one epoch ahead so that they are ready in time. */
  readonly pictures: (epoch: number) => Promise<Pictures>
  readonly onBatch: (epoch: number, done: number, total: number) => void
  readonly onEpoch: (epoch: number, loss: number, weights: ReadonlyArray<Weight>) => Promise<void>
}

/** Pictures per training step. */
export const batch_pictures = 32
/** The peak learning rate. */
const rate_max = 1.5e-3
/** Label smoothing. */
const smoothing = 0.03

const yieldToEventLoop = () => new Promise<void>((resume) => void setImmediate(resume))

interface Batch {
  readonly images: Float32Array
  readonly labels: Int32Array
}

const lossOf = (tf: Tensors, network: Network, weights: ReadonlyArray<Core.Tensor>, batch: Batch) =>
  tf.tidy(() => {
    const count = batch.labels.length
    const images = tf.tensor4d(batch.images, [count, trained_side, trained_side, 3])
    const one_hot = tf.oneHot(tf.tensor1d(batch.labels, "int32"), network.classes)
    const logits = logitsOf(tf, network, weights, images)
    const log_probabilities = tf.logSoftmax(logits)
    const targets = tf.add(
      tf.mul(tf.cast(one_hot, "float32"), 1 - smoothing),
      smoothing / network.classes,
    )
    const scalar: Core.Scalar = tf.neg(tf.mean(tf.sum(tf.mul(targets, log_probabilities), 1)))
    return scalar
  })

/** The loss of a batch and the gradients of all weights, in order. */
export const gradientsOf = (
  tf: Tensors,
  network: Network,
  weights: ReadonlyArray<Weight>,
  batch: Batch,
) =>
  tf.tidy(() => {
    const weight_tensors = weights.map(({ values, shape }) => tf.tensor(values, [...shape]))
    const derive = tf.valueAndGrads((...tensors: Array<Core.Tensor>) =>
      lossOf(tf, network, tensors, batch),
    )
    const { value, grads } = derive(weight_tensors)
    // Weights and gradients are float32 throughout.
    const gradients = grads.map((gradient) => gradient.dataSync() as Float32Array)
    return { loss: value.dataSync()[0] ?? Number.NaN, gradients }
  })

/** Trains from random weights. Returns the weights after the last epoch. */
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
      // Awaited in the next epoch; until then a rejection must not be unhandled.
      next.catch(() => undefined)
    }
    const random = randomOf(seedOf(seed, epoch + 1))
    // An incomplete last batch is skipped, unless it is the only one.
    const per_pass = Math.max(1, Math.floor(pictures.labels.length / batch_pictures))
    const total = per_pass * passes
    let loss = 0
    for (let pass = 0; pass < passes; pass++) {
      const order = shuffled(random, pictures.labels.length)
      for (let i = 0; i < per_pass; i++) {
        const indices = order.subarray(i * batch_pictures, (i + 1) * batch_pictures)
        const batch = batchOf(pictures, indices, (picture, to, at) =>
          writeAugmented(picture, to, at, random),
        )
        const result = gradientsOf(tf, network, weights, batch)
        adam.step(values, result.gradients, rate_max * rateAt(step++, epochs * total))
        loss += result.loss / total
        options.onBatch(epoch, pass * per_pass + i + 1, total)
        await yieldToEventLoop()
      }
    }
    if (!Number.isFinite(loss)) throw new Error("the training diverged: try another --seed")
    await options.onEpoch(epoch, loss, weights)
  }
  return weights
}

const batchOf = (
  pictures: Pictures,
  indices: ArrayLike<number>,
  write: (picture: Uint8Array, to: Float32Array, at: number) => void,
): Batch => {
  const images = new Float32Array(indices.length * picture_bytes)
  const labels = new Int32Array(indices.length)
  for (let i = 0; i < indices.length; i++) {
    const index = indices[i] ?? 0
    write(pictures.at(index), images, i * picture_bytes)
    labels[i] = pictures.labels[index] ?? 0
  }
  return { images, labels }
}

/** The probabilities of all pictures, concatenated rows of `classes`. */
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
    const indices = Uint32Array.from({ length }, (_, i) => from + i)
    const { images } = batchOf(pictures, indices, writeNormalized)
    const rows = tf.tidy(() => {
      const weight_tensors = weights.map(({ values, shape }) => tf.tensor(values, [...shape]))
      const input = tf.tensor4d(images, [length, trained_side, trained_side, 3])
      return tf.softmax(logitsOf(tf, network, weight_tensors, input)).dataSync()
    })
    all.set(rows, from * network.classes)
    await yieldToEventLoop()
  }
  return all
}
