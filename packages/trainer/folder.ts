/**
 * Reads a data set in PlantVillage's layout: one folder of JPEG or PNG files per class, optionally
 * below color, segmented or grayscale, and optionally split into train and valid. Source: plant
 * facts 5.
 */
import { createHash } from "node:crypto"
import { closeSync, type Dirent, openSync, readSync } from "node:fs"
import { open, readdir, readFile, rm, stat } from "node:fs/promises"
import { join, relative } from "node:path"
import { decode, resampler } from "#predictor"
import { side } from "#schemas/image-side.ts"
import { randomOf, seedOf, shuffled } from "./leaves/noise.ts"
import { halve, type Pictures, picture_bytes } from "./pictures.ts"

/** PlantVillage has 54,305 images, 87,000 with augmentation. */
export const images_max = 500_000
export const classes_max = 1000
/** The service's limits. Source: decisions, plant errors. */
const image_bytes_max = 20 * 2 ** 20
const pixels_max = 50_000_000
/** Levels of folders with a single subfolder, as extracted archives have. */
const depth_max = 4

const parents = ["color", "segmented", "grayscale"]
const training_names = ["train", "training"]
const held_out_names = ["valid", "val", "validation", "test"]
const image_name = /\.(jpe?g|png)$/i

export interface LabelledFile {
  readonly path: string
  readonly label: number
}

/** Sorted by class, then by name. */
export interface Images {
  readonly folder: string
  readonly files: ReadonlyArray<LabelledFile>
}

export interface DataSet {
  /** Sorted by code points like Keras, not by locale. */
  readonly classes: ReadonlyArray<string>
  /** All images; if the folder is split, those for training. */
  readonly images: Images
  /** The held-out images, if the folder is split. */
  readonly held_out: Images | undefined
}

const foldersIn = async (folder: string) =>
  (await readdir(folder, { withFileTypes: true })).filter((one) => one.isDirectory()).map(nameOf)

const nameOf = ({ name }: Dirent) => name

/** The image files of each class, sorted. */
const readClasses = async (folder: string) => {
  const classes = new Map<string, ReadonlyArray<string>>()
  for (const name of (await foldersIn(folder)).sort()) {
    const files = (await readdir(join(folder, name))).filter((file) => image_name.test(file)).sort()
    if (files.length > 0)
      classes.set(
        name,
        files.map((file) => join(folder, name, file)),
      )
  }
  return classes
}

/** Descends to the folder that contains the classes or the two splits. */
const descend = async (folder: string, depth: number): Promise<string> => {
  const names = await foldersIn(folder)
  const parent = parents.find((name) => names.includes(name))
  const [only] = names
  const subfolder = parent ?? (names.length === 1 ? only : undefined)
  if (subfolder === undefined || depth === 0) return folder
  const is_class = (await readdir(join(folder, subfolder))).some((file) => image_name.test(file))
  return is_class ? folder : descend(join(folder, subfolder), depth - 1)
}

const labelFiles = (
  classes: ReadonlyArray<string>,
  read: ReadonlyMap<string, ReadonlyArray<string>>,
) =>
  classes.flatMap((name, label) =>
    (read.get(name) ?? []).map((path): LabelledFile => ({ path, label })),
  )

export interface Split {
  readonly trained: Pictures
  readonly held_out: Pictures
}

const select = ({ labels, at }: Pictures, indexes: ReadonlyArray<number>): Pictures => ({
  labels: Uint16Array.from(indexes, (index) => labels[index] ?? 0),
  at: (n) => at(indexes[n] ?? 0),
})

/** Holds out a random share of each class, but at least one picture if the class has two. */
export const splitPictures = (
  all: Pictures,
  { classes, share, seed }: { classes: number; share: number; seed: number },
): Split => {
  const by_class = Array.from({ length: classes }, (): Array<number> => [])
  for (const [index, label] of all.labels.entries()) by_class[label]?.push(index)
  const trained: Array<number> = []
  const held_out: Array<number> = []
  for (const [label, members] of by_class.entries()) {
    const order = shuffled(randomOf(seedOf(seed, label)), members.length)
    const target = Math.max(1, Math.round(members.length * share))
    // Leaves at least one picture for training.
    const held_count = Math.min(target, members.length - 1)
    for (const [i, index] of order.entries()) {
      const one = members[index]
      if (one !== undefined) (i < held_count ? held_out : trained).push(one)
    }
  }
  return { trained: select(all, trained), held_out: select(all, held_out) }
}

/**
 * Reads the classes and files of a folder. Throws an error with a one-line message if it is not a
 * data set.
 */
export const readDataSet = async (folder: string): Promise<DataSet> => {
  const found = await stat(folder).catch(() => undefined)
  if (found?.isDirectory() !== true) throw new Error(`the folder ${folder} does not exist`)
  const at = await descend(folder, depth_max)
  const names = await foldersIn(at)
  const training_name = training_names.find((name) => names.includes(name))
  const held_out_name = held_out_names.find((name) => names.includes(name))
  const subfolder = training_name === undefined ? at : join(at, training_name)
  const read = await readClasses(subfolder)
  const classes = [...read.keys()]
  if (classes.length < 2) {
    throw new Error(`${at} needs at least two folders of JPEG or PNG files, one for each class`)
  }
  if (classes.length > classes_max) throw new Error(`${at} has more than ${classes_max} classes`)
  const images = { folder: subfolder, files: labelFiles(classes, read) }
  if (images.files.length > images_max) {
    throw new Error(`${at} has more than ${images_max} images`)
  }
  if (training_name === undefined || held_out_name === undefined) {
    return { classes, images, held_out: undefined }
  }
  const held_out_folder = join(at, held_out_name)
  const held_out = {
    folder: held_out_folder,
    files: labelFiles(classes, await readClasses(held_out_folder)),
  }
  return { classes, images, held_out }
}

export interface Packed {
  readonly images: Images
  /** The images that can be decoded. */
  readonly pictures: Pictures
  /** Relative paths of files that cannot be decoded. */
  readonly skipped: ReadonlyArray<string>
  /** SHA-256 over the files' names and hashes in order, in hex. */
  readonly sha256: string
  /** Removes the packed file. The pictures cannot be read afterwards. */
  readonly remove: () => Promise<void>
}

const openPacked = (path: string) => {
  const bytes = new Uint8Array(picture_bytes)
  const file = openSync(path, "r")
  const at = (index: number) => {
    readSync(file, bytes, 0, picture_bytes, index * picture_bytes)
    return bytes
  }
  const remove = async () => {
    closeSync(file)
    await rm(path)
  }
  return { at, remove }
}

const packImage = async (path: string, resample: ReturnType<typeof resampler>) => {
  const { size } = await stat(path)
  if (size > image_bytes_max) return undefined
  const bytes = await readFile(path)
  const decoded = await decode(bytes, { pixels_max, auto_orient: false })
  const sha256 = createHash("sha256").update(bytes).digest()
  return "problem" in decoded ? undefined : { sha256, rgb: halve(resample(decoded, "bicubic")) }
}

/** Preprocesses images to one file, 37 kB each, so that they need not be in memory. */
export const pack = async (
  images: Images,
  { file, folder, onImage }: { file: string; folder: string; onImage: (done: number) => void },
): Promise<Packed> => {
  const resample = resampler(side)
  const labels: Array<number> = []
  const skipped: Array<string> = []
  const hash = createHash("sha256")
  const to = await open(file, "wx")
  try {
    for (const [i, { path, label }] of images.files.entries()) {
      const packed = await packImage(path, resample)
      const name = relative(folder, path)
      if (packed === undefined) {
        skipped.push(name)
      } else {
        await to.write(packed.rgb, 0, picture_bytes, labels.length * picture_bytes)
        labels.push(label)
        hash.update(`${name}\n`).update(packed.sha256)
      }
      onImage(i + 1)
    }
  } finally {
    await to.close()
  }
  const { at, remove } = openPacked(file)
  const pictures = { labels: Uint16Array.from(labels), at }
  return { images, pictures, skipped, sha256: hash.digest("hex"), remove }
}
