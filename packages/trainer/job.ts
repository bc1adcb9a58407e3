/** One training from its pictures to its files. Source: issue 7, demo model. */
import { createHash } from "node:crypto"
import { join } from "node:path"
import { type DemoPictures, demoPictures } from "./demo.ts"
import { halfPrecision, publish, writeTrained } from "./files.ts"
import { divided, type Images, pack, readDataSet } from "./folder.ts"
import { demo_classes, not_a_leaf } from "./leaves/leaf.ts"
import { negative_kinds } from "./leaves/negative.ts"
import { smallNetwork } from "./network.ts"
import { probabilitiesOf, train } from "./optimizer.ts"
import { type Pictures, picture_bytes } from "./pictures.ts"
import { areaUnderCurve, likeliest, scoreOf } from "./score.ts"
import { openTensors, type Tensors } from "./tensors.ts"
import { leftOut, notMeasured, requireRead } from "./unread.ts"

interface Wanted {
  readonly seed: number
  readonly epochs: number
  readonly out: string
  /** The folder beside it that is written first. */
  readonly staging: string
}

/** The demo model, on leaves that are drawn for it. */
export interface DemoJob extends Wanted {
  readonly kind: "demo"
  /** Fresh leaves of each epoch. */
  readonly leaves: number
  /** Pictures of all classes that are measured at the end. */
  readonly held_out: number
  /** Pictures of each kind without a leaf that are measured at the end. */
  readonly negatives: number
}

/** A network for images of the user's own. */
export interface FolderJob extends Wanted {
  readonly kind: "folder"
  readonly folder: string
  /** Of each class, the share that is held out. */
  readonly share: number
}

export type TrainingJob = DemoJob | FolderJob

/** What a training says while it runs. */
export type Told =
  | {
      readonly kind: "at"
      readonly label: string
      readonly done: number
      readonly total: number
    }
  | { readonly kind: "line"; readonly text: string }
  | { readonly kind: "failed"; readonly detail: string }
  | { readonly kind: "done"; readonly summary: ReadonlyArray<string> }

type Tell = (told: Told) => void

/** Of what is held out, so many are asked after each epoch. */
const asked_max = 340
/** An epoch of drawn leaves goes over them so often: a leaf costs as much as a step. */
const demo_passes = 2

const percent = (share: number) => `${(share * 100).toFixed(1)} %`

interface Learning {
  readonly wanted: Wanted
  readonly classes: ReadonlyArray<string>
  readonly passes: number
  readonly pictures: (epoch: number) => Promise<Pictures>
  readonly held_out: Pictures
}

const first = ({ labels, at }: Pictures, count: number): Pictures => ({
  labels: labels.subarray(0, count),
  at,
})

const learn = async (tf: Tensors, learning: Learning, tell: Tell) => {
  const { wanted, classes, passes, held_out } = learning
  const network = smallNetwork(classes.length)
  const asked = first(held_out, asked_max)
  const weights = await train(tf, {
    network,
    seed: wanted.seed,
    epochs: wanted.epochs,
    passes,
    pictures: learning.pictures,
    onBatch: (epoch, done, total) =>
      tell({ kind: "at", label: `epoch ${epoch + 1} of ${wanted.epochs}`, done, total }),
    onEpoch: async (epoch, loss, now) => {
      const probabilities = await probabilitiesOf(tf, network, now, asked)
      const { accuracy } = scoreOf(classes, asked.labels, probabilities)
      const figures = `loss ${loss.toFixed(3)}, held out ${percent(accuracy)}`
      tell({ kind: "line", text: `epoch ${epoch + 1} of ${wanted.epochs}: ${figures}` })
    },
  })
  return { network, weights: halfPrecision(weights) }
}

type Learned = Awaited<ReturnType<typeof learn>>

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

interface Asked {
  readonly demo: DemoPictures
  readonly job: DemoJob
  readonly learned: Learned
  /** What it says of each leaf that was held out: that it is none. */
  readonly of_leaves: Float32Array
}

const classes = demo_classes.length
const last = demo_classes.indexOf(not_a_leaf)

/** How the pictures without a leaf of some kinds are told from drawn leaves. */
const turnedAway = async (
  tf: Tensors,
  { demo, job, learned, of_leaves }: Asked,
  kinds: ReadonlyArray<string>,
) => {
  const all: Array<number> = []
  const by_kind: Record<string, { auroc: number; turned_away: number }> = {}
  for (const kind of kinds) {
    const pictures = await demo.negatives(kind, job.negatives)
    const probabilities = await probabilitiesOf(tf, learned.network, learned.weights, pictures)
    const own = column(probabilities, classes, last)
    const told = likeliest(probabilities, classes).filter((one) => one === last).length
    all.push(...own)
    by_kind[kind] = {
      auroc: rounded(areaUnderCurve(own, of_leaves)),
      turned_away: rounded(told / own.length),
    }
  }
  return { auroc: rounded(areaUnderCurve(all, of_leaves)), by_kind }
}

/** Measures a demo model on what was held back, and writes it; answers how good it is. */
export const finishDemo = async (
  tf: Tensors,
  job: DemoJob,
  { demo, learned, held_out }: { demo: DemoPictures; learned: Learned; held_out: Pictures },
) => {
  const { seed, epochs, leaves } = job
  const { network, weights } = learned
  const probabilities = await probabilitiesOf(tf, network, weights, held_out)
  const score = scoreOf(demo_classes, held_out.labels, probabilities)
  const of_leaves = column(probabilities, classes, last).filter(
    (_, i) => held_out.labels[i] !== last,
  )
  const asked = { demo, job, learned, of_leaves }
  const trained_kinds = await turnedAway(tf, asked, negative_kinds.trained)
  const held_back_kinds = await turnedAway(tf, asked, negative_kinds.held_back)
  const metrics = {
    command: `almanac plant train --demo --seed ${seed} --epochs ${epochs} --leaves ${leaves}`,
    trained_on: `${leaves * epochs} drawn pictures, each ${demo_passes} times`,
    ...score,
    dataset_sha256: hashOf(held_out),
    not_a_leaf: { trained_kinds, held_back_kinds },
  }
  await writeTrained(job.staging, { network, weights, classes: demo_classes, metrics })
  return [
    `held out: ${percent(score.accuracy)} of ${score.pictures} pictures right`,
    `not a leaf: AUROC ${trained_kinds.auroc} on kinds it was trained on, ` +
      `${held_back_kinds.auroc} on kinds it has never seen`,
  ]
}

const runDemo = async (tf: Tensors, job: DemoJob, tell: Tell) => {
  const demo = demoPictures(job.seed)
  try {
    const held_out = await demo.heldOut(job.held_out)
    const pictures = (epoch: number) => demo.epoch(epoch, job.leaves)
    const learning = { wanted: job, classes: demo_classes, passes: demo_passes, pictures, held_out }
    const learned = await learn(tf, learning, tell)
    return await finishDemo(tf, job, { demo, learned, held_out })
  } finally {
    await demo.close()
  }
}

/** Reads a folder's images, and divides what can be read where it is not divided already. */
const readFolder = async ({ folder, share, seed, staging }: FolderJob, tell: Tell) => {
  const set = await readDataSet(folder)
  const { classes, images } = set
  const total = images.found.length + (set.held_out?.found.length ?? 0)
  tell({ kind: "line", text: `${classes.length} classes, ${total} images in ${folder}` })
  const packed = (part: Images, name: string, before: number) =>
    pack(part, {
      file: join(staging, name),
      folder,
      onImage: (done) => tell({ kind: "at", label: "images", done: before + done, total }),
    })
  const all = await packed(images, "images.rgb", 0)
  const apart = set.held_out && (await packed(set.held_out, "held-out.rgb", images.found.length))
  const parts = apart === undefined ? [all] : [all, apart]
  requireRead(folder, classes, parts)
  const pictures =
    apart === undefined
      ? divided(all.pictures, { classes: classes.length, share, seed })
      : { trained: all.pictures, held_out: apart.pictures }
  return { classes, parts, ...pictures }
}

const runFolder = async (tf: Tensors, job: FolderJob, tell: Tell) => {
  const { seed, epochs, staging } = job
  const { classes: names, parts, trained, held_out } = await readFolder(job, tell)
  const pictures = async () => trained
  const learning = { wanted: job, classes: names, passes: 1, pictures, held_out }
  const { network, weights } = await learn(tf, learning, tell)
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
    `held out: ${percent(score.accuracy)} of ${score.pictures} images right`,
    ...notMeasured(names, held_out.labels),
    ...leftOut(skipped),
  ]
}

/** Trains and writes the model's folder; answers lines that say how good it is. */
export const runTraining = async (job: TrainingJob, tell: Tell): Promise<ReadonlyArray<string>> => {
  const tf = await openTensors()
  const lines = job.kind === "demo" ? await runDemo(tf, job, tell) : await runFolder(tf, job, tell)
  await publish(job.staging, job.out)
  return lines
}
