/** Runs a training job, from its images to the written model. Source: issue 7, demo model. */
import { createHash } from "node:crypto"
import { join } from "node:path"
import { type DemoPictures, demoPictures } from "./demo.ts"
import { halfPrecision, publish, writeTrained } from "./files.ts"
import { type Images, pack, readDataSet, splitPictures } from "./folder.ts"
import { demo_classes, not_a_leaf } from "./leaves/leaf.ts"
import { negative_kinds } from "./leaves/negative.ts"
import { smallNetwork } from "./network.ts"
import { probabilitiesOf, train } from "./optimizer.ts"
import { type Pictures, picture_bytes } from "./pictures.ts"
import { areaUnderCurve, predictedClasses, scoreOf } from "./score.ts"
import { openTensors, type Tensors } from "./tensors.ts"
import { leftOut, notMeasured, requireRead } from "./unreadable.ts"

interface JobOptions {
  readonly seed: number
  readonly epochs: number
  readonly out: string
  /** The temporary folder, next to `out`. */
  readonly staging: string
}

/** Trains the demo model on drawn leaves. */
export interface DemoJob extends JobOptions {
  readonly kind: "demo"
  /** New leaves per epoch. */
  readonly leaves: number
  /** Pictures of all classes for the final evaluation. */
  readonly held_out: number
  /** Pictures of each kind without a leaf for the final evaluation. */
  readonly negatives: number
}

/** Trains a network on the user's images. */
export interface FolderJob extends JobOptions {
  readonly kind: "folder"
  readonly folder: string
  /** The share of each class that is held out. */
  readonly share: number
}

export type TrainingJob = DemoJob | FolderJob

/** The messages of a running job. */
export type JobMessage =
  | {
      readonly kind: "at"
      readonly label: string
      readonly done: number
      readonly total: number
    }
  | { readonly kind: "line"; readonly text: string }
  | { readonly kind: "failed"; readonly detail: string }
  | { readonly kind: "done"; readonly summary: ReadonlyArray<string> }

type Report = (message: JobMessage) => void

/** The number of held-out pictures that are evaluated after each epoch. */
const epoch_sample_max = 340
/** Passes over the drawn leaves of an epoch: drawing one costs as much as a training step. */
const demo_passes = 2

const percent = (share: number) => `${(share * 100).toFixed(1)} %`

interface TrainingRun {
  readonly options: JobOptions
  readonly classes: ReadonlyArray<string>
  readonly passes: number
  readonly pictures: (epoch: number) => Promise<Pictures>
  readonly held_out: Pictures
}

const firstPictures = ({ labels, at }: Pictures, count: number): Pictures => ({
  labels: labels.subarray(0, count),
  at,
})

const trainNetwork = async (tf: Tensors, training_run: TrainingRun, report: Report) => {
  const { options, classes, passes, held_out } = training_run
  const network = smallNetwork(classes.length)
  const sample = firstPictures(held_out, epoch_sample_max)
  const weights = await train(tf, {
    network,
    seed: options.seed,
    epochs: options.epochs,
    passes,
    pictures: training_run.pictures,
    onBatch: (epoch, done, total) =>
      report({ kind: "at", label: `epoch ${epoch + 1} of ${options.epochs}`, done, total }),
    onEpoch: async (epoch, loss, now) => {
      const probabilities = await probabilitiesOf(tf, network, now, sample)
      const { accuracy } = scoreOf(classes, sample.labels, probabilities)
      const figures = `loss ${loss.toFixed(3)}, held out ${percent(accuracy)}`
      report({ kind: "line", text: `epoch ${epoch + 1} of ${options.epochs}: ${figures}` })
    },
  })
  return { network, weights: halfPrecision(weights) }
}

type TrainedNetwork = Awaited<ReturnType<typeof trainNetwork>>

const hashOf = (pictures: Pictures) => {
  const hash = createHash("sha256")
  for (let i = 0; i < pictures.labels.length; i++) {
    hash.update(pictures.at(i).subarray(0, picture_bytes))
  }
  return hash.digest("hex")
}

const column = (probabilities: Float32Array, classes: number, index: number) =>
  Float32Array.from({ length: probabilities.length / classes }, (_, i) =>
    Number(probabilities[i * classes + index]),
  )

const rounded = (share: number) => Math.round(share * 1e4) / 1e4

interface Evaluation {
  readonly demo: DemoPictures
  readonly job: DemoJob
  readonly trained_network: TrainedNetwork
  /** The probability of not_a_leaf for each held-out leaf. */
  readonly leaf_scores: Float32Array
}

const classes = demo_classes.length
const last = demo_classes.indexOf(not_a_leaf)

/** Measures how well pictures without a leaf are distinguished from leaves. */
const evaluateNegatives = async (
  tf: Tensors,
  { demo, job, trained_network, leaf_scores }: Evaluation,
  kinds: ReadonlyArray<string>,
) => {
  const all: Array<number> = []
  const by_kind: Record<string, { auroc: number; turned_away: number }> = {}
  for (const kind of kinds) {
    const pictures = await demo.negatives(kind, job.negatives)
    const probabilities = await probabilitiesOf(
      tf,
      trained_network.network,
      trained_network.weights,
      pictures,
    )
    const scores = column(probabilities, classes, last)
    const rejected = predictedClasses(probabilities, classes).filter((one) => one === last).length
    all.push(...scores)
    by_kind[kind] = {
      auroc: rounded(areaUnderCurve(scores, leaf_scores)),
      turned_away: rounded(rejected / scores.length),
    }
  }
  return { auroc: rounded(areaUnderCurve(all, leaf_scores)), by_kind }
}

/** Evaluates and writes the demo model. Returns a summary. */
export const finishDemo = async (
  tf: Tensors,
  job: DemoJob,
  {
    demo,
    trained_network,
    held_out,
  }: { demo: DemoPictures; trained_network: TrainedNetwork; held_out: Pictures },
) => {
  const { seed, epochs, leaves } = job
  const { network, weights } = trained_network
  const probabilities = await probabilitiesOf(tf, network, weights, held_out)
  const score = scoreOf(demo_classes, held_out.labels, probabilities)
  const leaf_scores = column(probabilities, classes, last).filter(
    (_, i) => held_out.labels[i] !== last,
  )
  const sample = { demo, job, trained_network, leaf_scores }
  const trained_kinds = await evaluateNegatives(tf, sample, negative_kinds.trained)
  const held_back_kinds = await evaluateNegatives(tf, sample, negative_kinds.held_back)
  const metrics = {
    command: `almanac plant train --demo --seed ${seed} --epochs ${epochs} --leaves ${leaves}`,
    trained_on: `${leaves * epochs} drawn pictures, each ${demo_passes} times`,
    ...score,
    dataset_sha256: hashOf(held_out),
    not_a_leaf: { trained_kinds, held_back_kinds },
  }
  await writeTrained(job.staging, { network, weights, classes: demo_classes, metrics })
  return [
    `held out: ${percent(score.accuracy)} of ${score.pictures} pictures correct`,
    `not a leaf: AUROC ${trained_kinds.auroc} on kinds it was trained on, ` +
      `${held_back_kinds.auroc} on kinds it has never seen`,
  ]
}

const runDemo = async (tf: Tensors, job: DemoJob, report: Report) => {
  const demo = demoPictures(job.seed)
  try {
    const held_out = await demo.heldOut(job.held_out)
    const pictures = (epoch: number) => demo.epoch(epoch, job.leaves)
    const training_run = {
      options: job,
      classes: demo_classes,
      passes: demo_passes,
      pictures,
      held_out,
    }
    const trained_network = await trainNetwork(tf, training_run, report)
    return await finishDemo(tf, job, { demo, trained_network, held_out })
  } finally {
    await demo.close()
  }
}

/** Packs a folder's images, and splits them unless the folder is split already. */
const readFolder = async ({ folder, share, seed, staging }: FolderJob, report: Report) => {
  const set = await readDataSet(folder)
  const { classes, images } = set
  const total = images.files.length + (set.held_out?.files.length ?? 0)
  report({ kind: "line", text: `${classes.length} classes, ${total} images in ${folder}` })
  const packed = (part: Images, name: string, before: number) =>
    pack(part, {
      file: join(staging, name),
      folder,
      onImage: (done) => report({ kind: "at", label: "images", done: before + done, total }),
    })
  const all = await packed(images, "images.rgb", 0)
  const apart = set.held_out && (await packed(set.held_out, "held-out.rgb", images.files.length))
  const parts = apart === undefined ? [all] : [all, apart]
  requireRead(folder, classes, parts)
  const pictures =
    apart === undefined
      ? splitPictures(all.pictures, { classes: classes.length, share, seed })
      : { trained: all.pictures, held_out: apart.pictures }
  return { classes, parts, ...pictures }
}

const runFolder = async (tf: Tensors, job: FolderJob, report: Report) => {
  const { seed, epochs, staging } = job
  const { classes: names, parts, trained, held_out } = await readFolder(job, report)
  const pictures = async () => trained
  const training_run = { options: job, classes: names, passes: 1, pictures, held_out }
  const { network, weights } = await trainNetwork(tf, training_run, report)
  const probabilities = await probabilitiesOf(tf, network, weights, held_out)
  const score = scoreOf(names, held_out.labels, probabilities)
  const skipped = parts.flatMap((part) => part.skipped)
  const metrics = {
    command: `almanac plant train DIR --seed ${seed} --epochs ${epochs}`,
    trained_on: `${trained.labels.length} images, each ${epochs} times`,
    skipped: skipped.length,
    ...score,
    dataset_sha256: createHash("sha256")
      .update(parts.map(({ sha256 }) => sha256).join(""))
      .digest("hex"),
  }
  for (const { remove } of parts) await remove()
  await writeTrained(staging, { network, weights, classes: names, metrics })
  return [
    `held out: ${percent(score.accuracy)} of ${score.pictures} images correct`,
    ...notMeasured(names, held_out.labels),
    ...leftOut(skipped),
  ]
}

/** Trains the network and writes the model's folder. Returns a summary, one line each. */
export const runTraining = async (
  job: TrainingJob,
  report: Report,
): Promise<ReadonlyArray<string>> => {
  const tf = await openTensors()
  const lines =
    job.kind === "demo" ? await runDemo(tf, job, report) : await runFolder(tf, job, report)
  await publish(job.staging, job.out)
  return lines
}
