/**
 * A folder of classes as PlantVillage has it: each class a folder of JPEG or PNG files, perhaps
 * under color, segmented or grayscale, perhaps split into train and valid. Source: plant facts 5.
 */
import { createHash } from "node:crypto"
import { closeSync, type Dirent, openSync, readSync } from "node:fs"
import { open, readdir, readFile, rm, stat } from "node:fs/promises"
import { join, relative } from "node:path"
import { decode, resampler } from "#predictor"
import { side } from "#schemas/image-side.ts"
import { randomOf, seedOf, shuffled } from "./leaves/noise.ts"
import { halved, type Pictures, picture_bytes } from "./pictures.ts"

/** Images of a data set; PlantVillage has 54,305, and 87,000 once they are varied. */
export const images_max = 500_000
/** Classes of a data set. */
export const classes_max = 1000
/** As the service takes them. Source: decisions, plant errors. */
const image_bytes_max = 20 * 2 ** 20
const pixels_max = 50_000_000
/** Folders in folders that hold nothing else, as archives are unpacked. */
const depth_max = 4

const parents = ["color", "segmented", "grayscale"]
const trained_names = ["train", "training"]
const held_out_names = ["valid", "val", "validation", "test"]
const image_name = /\.(jpe?g|png)$/i

export interface Found {
  readonly path: string
  readonly label: number
}

/** In the order of their classes, and in each by their names. */
export interface Images {
  readonly folder: string
  readonly found: ReadonlyArray<Found>
}

export interface DataSet {
  /** In the order of code points, as Keras has them: never as a language sorts. */
  readonly classes: ReadonlyArray<string>
  /** All of them; where the folder is split already, those to train on. */
  readonly images: Images
  /** Where it is split already. */
  readonly held_out: Images | undefined
}

const foldersIn = async (folder: string) =>
  (await readdir(folder, { withFileTypes: true })).filter((one) => one.isDirectory()).map(nameOf)

const nameOf = ({ name }: Dirent) => name

/** The classes in a folder, and the images of each, in the order of their names. */
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

/** Goes down to the folder that holds classes, or their two splits. */
const descend = async (folder: string, depth: number): Promise<string> => {
  const names = await foldersIn(folder)
  const parent = parents.find((name) => names.includes(name))
  const [only] = names
  const below = parent ?? (names.length === 1 ? only : undefined)
  if (below === undefined || depth === 0) return folder
  const is_class = (await readdir(join(folder, below))).some((file) => image_name.test(file))
  return is_class ? folder : descend(join(folder, below), depth - 1)
}

const labelled = (
  classes: ReadonlyArray<string>,
  read: ReadonlyMap<string, ReadonlyArray<string>>,
) =>
  classes.flatMap((name, label) => (read.get(name) ?? []).map((path): Found => ({ path, label })))

export interface Divided {
  readonly trained: Pictures
  readonly held_out: Pictures
}

const chosen = ({ labels, at }: Pictures, indexes: ReadonlyArray<number>): Pictures => ({
  labels: Uint16Array.from(indexes, (index) => labels[index] ?? 0),
  at: (n) => at(indexes[n] ?? 0),
})

/** Of each class its share is held out, at random by the seed: at least one, if it has two. */
export const divided = (
  all: Pictures,
  { classes, share, seed }: { classes: number; share: number; seed: number },
): Divided => {
  const by_class = Array.from({ length: classes }, (): Array<number> => [])
  for (const [index, label] of all.labels.entries()) by_class[label]?.push(index)
  const trained: Array<number> = []
  const held_out: Array<number> = []
  for (const [label, own] of by_class.entries()) {
    const order = shuffled(randomOf(seedOf(seed, label)), own.length)
    const most = Math.max(1, Math.round(own.length * share))
    // One is left to train on, however large the share.
    const kept = Math.min(most, own.length - 1)
    for (const [i, index] of order.entries()) {
      const one = own[index]
      if (one !== undefined) (i < kept ? held_out : trained).push(one)
    }
  }
  return { trained: chosen(all, trained), held_out: chosen(all, held_out) }
}

/** Looks what a folder holds. Throws one line where it is no data set. */
export const readDataSet = async (folder: string): Promise<DataSet> => {
  const found = await stat(folder).catch(() => undefined)
  if (found?.isDirectory() !== true) throw new Error(`there is no folder ${folder}`)
  const at = await descend(folder, depth_max)
  const names = await foldersIn(at)
  const trained_name = trained_names.find((name) => names.includes(name))
  const held_out_name = held_out_names.find((name) => names.includes(name))
  const below = trained_name === undefined ? at : join(at, trained_name)
  const read = await readClasses(below)
  const classes = [...read.keys()]
  if (classes.length < 2) {
    throw new Error(`${at} needs at least two folders of JPEG or PNG files, one for each class`)
  }
  if (classes.length > classes_max) throw new Error(`${at} has more than ${classes_max} classes`)
  const images = { folder: below, found: labelled(classes, read) }
  if (images.found.length > images_max) {
    throw new Error(`${at} has more than ${images_max} images`)
  }
  if (trained_name === undefined || held_out_name === undefined) {
    return { classes, images, held_out: undefined }
  }
  const apart = join(at, held_out_name)
  const held_out = { folder: apart, found: labelled(classes, await readClasses(apart)) }
  return { classes, images, held_out }
}

export interface Packed {
  readonly images: Images
  /** Of those that can be read. */
  readonly pictures: Pictures
  /** Files that cannot be decoded, by their paths below the folder. */
  readonly skipped: ReadonlyArray<string>
  /** SHA-256 over each file's own, in their order, in hex. */
  readonly sha256: string
  /** Takes the packed file away: the pictures are gone with it. */
  readonly remove: () => Promise<void>
}

const reading = (path: string) => {
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

const packedOf = async (path: string, resized: ReturnType<typeof resampler>) => {
  const { size } = await stat(path)
  if (size > image_bytes_max) return undefined
  const bytes = await readFile(path)
  const decoded = await decode(bytes, { pixels_max, auto_orient: false })
  const sha256 = createHash("sha256").update(bytes).digest()
  return "problem" in decoded ? undefined : { sha256, rgb: halved(resized(decoded, "bicubic")) }
}

/** Images as the network sees them, in one file: 37 kB each, so that memory does not grow. */
export const pack = async (
  images: Images,
  { file, folder, onImage }: { file: string; folder: string; onImage: (done: number) => void },
): Promise<Packed> => {
  const resized = resampler(side)
  const labels: Array<number> = []
  const skipped: Array<string> = []
  const hash = createHash("sha256")
  const to = await open(file, "wx")
  try {
    for (const [i, { path, label }] of images.found.entries()) {
      const packed = await packedOf(path, resized)
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
  const { at, remove } = reading(file)
  const pictures = { labels: Uint16Array.from(labels), at }
  return { images, pictures, skipped, sha256: hash.digest("hex"), remove }
}
