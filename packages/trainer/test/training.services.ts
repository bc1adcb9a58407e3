/** Complete trainings, from a folder of images to a model that the service can open. */
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs"
import { writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { basename, join } from "node:path"
import { Effect, Exit, Fiber } from "effect"
import sharp from "sharp"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { openModel } from "#models"
import { openSession, tensor_length } from "#predictor"
import { readDataSet, splitPictures } from "../folder.ts"
import { demo_classes, drawLeaf } from "../leaves/leaf.ts"
import { negative_kinds } from "../leaves/negative.ts"
import type { Pictures } from "../pictures.ts"
import { type Training, type TrainingProgress, training } from "../training.ts"

const folder = mkdtempSync(join(tmpdir(), "almanac-training-"))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const side = 224
const names = ["DemoBlade___Powdery_mildew", "DemoLobed___healthy"]

const jpegOf = (name: string, seed: number) =>
  sharp(drawLeaf(demo_classes.indexOf(name), seed, side), {
    raw: { width: side, height: side, channels: 3 },
  })
    .jpeg({ quality: 90 })
    .toBuffer()

/** Creates empty files, enough for tests of names. */
const writeNames = async (paths: ReadonlyArray<string>) => {
  const at = mkdtempSync(join(folder, "names-"))
  for (const path of paths) {
    mkdirSync(join(at, path, ".."), { recursive: true })
    await writeFile(join(at, path), "")
  }
  return at
}

/** Creates readable and unreadable files for each path prefix. */
type Files = Readonly<Record<string, readonly [sound: number, broken: number]>>

const writeSome = async (files: Files) => {
  const at = mkdtempSync(join(folder, "some-"))
  for (const [begin, [sound, broken]] of Object.entries(files)) {
    mkdirSync(join(at, begin, ".."), { recursive: true })
    for (let n = 0; n < sound + broken; n++) {
      const bytes = n < broken ? "no image" : await jpegOf(names[0] ?? "", n)
      await writeFile(join(at, `${begin}${n}.jpg`), bytes)
    }
  }
  return at
}

const numbered = (name: string, count: number) =>
  Array.from({ length: count }, (_, i) => `${name}/${i}.jpg`)

/** The message of a rejection. */
const refusal = (promise: Promise<unknown>) =>
  promise.then(
    () => "",
    (error: Error) => error.message,
  )

describe("a folder of classes", () => {
  it("has classes sorted by code points and only JPEG and PNG files", async () => {
    const files = ["a/1.jpg", "B/1.JPG", "_c/1.jpeg", "a b/1.png", "notes/read.txt", "a/2.gif"]
    const set = await readDataSet(await writeNames(files))
    expect(set.classes).toEqual(["B", "_c", "a", "a b"])
    expect(set.images.files.map(({ path }) => basename(path))).toEqual([
      "1.JPG",
      "1.jpeg",
      "1.jpg",
      "1.png",
    ])
  })

  it("may be below color or segmented, and in folders with a single subfolder", async () => {
    const files = (parent: string) => ["x", "y"].flatMap((name) => numbered(`${parent}/${name}`, 3))
    const at = await writeNames([...files("in/side/color"), ...files("in/side/segmented")])
    const set = await readDataSet(at)
    expect(set.classes).toEqual(["x", "y"])
    expect(set.images.files.every(({ path }) => path.includes("/color/"))).toBe(true)
    const segmented = await writeNames(files("segmented"))
    expect((await readDataSet(segmented)).classes).toEqual(["x", "y"])
  })

  it("may be split into train and valid", async () => {
    const names_of = (parent: string, count: number) =>
      ["x", "y"].flatMap((name) => numbered(`${parent}/${name}`, count))
    for (const held_out of ["valid", "val", "validation", "test"]) {
      const at = await writeNames([...names_of("train", 4), ...names_of(held_out, 2)])
      const set = await readDataSet(at)
      const apart = set.held_out?.files ?? []
      expect([set.classes, set.images.files.length, apart.length]).toEqual([["x", "y"], 8, 4])
      expect(apart.every(({ path }) => path.includes(`/${held_out}/`))).toBe(true)
    }
  })

  it("is rejected in one line without two classes, or if it does not exist", async () => {
    const one = await writeNames(["only/1.jpg", "empty/read.txt"])
    expect(await refusal(readDataSet(one))).toMatch(/needs at least two folders/)
    expect(await refusal(readDataSet(join(one, "no")))).toMatch(/the folder/)
  })
})

describe("images that can be read", () => {
  const [many, few, one] = [50, 5, 1]
  const labels = Uint16Array.from([
    ...Array.from({ length: many }, () => 0),
    ...Array.from({ length: few }, () => 1),
    ...Array.from({ length: one }, () => 2),
  ])
  const all = { labels, at: (index: number) => Uint8Array.of(index) }
  const indexes = ({ labels: { length }, at }: Pictures) =>
    Array.from({ length }, (_, n) => at(n)[0] ?? -1)
  const options = { classes: 4, share: 0.2, seed: 1 }

  it("are split by class and seed, with the same share of each and no image on both sides", () => {
    const { trained, held_out } = splitPictures(all, options)
    const count = (label: number) => held_out.labels.filter((other) => other === label).length
    expect([0, 1, 2, 3].map(count)).toEqual([10, 1, 0, 0])
    expect(new Set([...indexes(trained), ...indexes(held_out)]).size).toBe(many + few + one)
    for (const part of [trained, held_out]) {
      expect(indexes(part).map((index) => labels[index])).toEqual([...part.labels])
    }
    expect(indexes(splitPictures(all, options).held_out)).toEqual(indexes(held_out))
    const otherwise = splitPictures(all, { ...options, seed: 2 })
    expect(indexes(otherwise.held_out)).not.toEqual(indexes(held_out))
  })

  it("of a class with two images are on both sides for any share", () => {
    for (const share of [0.01, 0.5, 0.9, 1]) {
      for (let count = 2; count < 12; count++) {
        const alike = { labels: new Uint16Array(count), at: all.at }
        const { trained, held_out } = splitPictures(alike, { ...options, classes: 1, share })
        expect(Math.min(trained.labels.length, held_out.labels.length)).toBeGreaterThan(0)
      }
    }
  })
})

describe("a training on drawn leaves", () => {
  it("writes the demo's classes and the metrics of each kind without a leaf", async () => {
    const out = join(folder, "demo")
    const sizes = { epochs: 1, leaves: 64, held_out: 34, negatives: 4 }
    const wanted: Training = { kind: "demo", seed: 5, out, ...sizes }
    const lines = await Effect.runPromise(training(wanted, () => undefined))
    expect(lines).toEqual([
      expect.stringMatching(/^held out: [\d.]+ % of 34 pictures correct$/),
      expect.stringMatching(/^not a leaf: AUROC [\d.]+ on kinds .*, [\d.]+ on kinds it has never/),
    ])
    const read = (name: string) => JSON.parse(readFileSync(join(out, name), "utf8"))
    expect(Object.values(read("class_indices.json"))).toEqual(demo_classes)
    const metrics = read("metrics.json")
    expect(metrics.command).toBe("almanac plant train --demo --seed 5 --epochs 1 --leaves 64")
    const { trained_kinds, held_back_kinds } = metrics.not_a_leaf
    expect(Object.keys(trained_kinds.by_kind)).toEqual(negative_kinds.trained)
    expect(Object.keys(held_back_kinds.by_kind)).toEqual(negative_kinds.held_back)
  })
})

describe("a training", () => {
  const images = join(folder, "images")
  beforeAll(async () => {
    for (const name of names) {
      mkdirSync(join(images, name), { recursive: true })
      for (let seed = 0; seed < 48; seed++) {
        await writeFile(join(images, name, `${seed}.jpg`), await jpegOf(name, seed))
      }
    }
    await writeFile(join(images, names[0] ?? "", "broken.jpg"), "no image")
  })

  const wanted = (out: string, epochs: number) => ({
    kind: "folder" as const,
    folder: images,
    share: 0.25,
    seed: 3,
    epochs,
    out: join(folder, out),
  })

  const refusedOf = (at: string) =>
    refusal(Effect.runPromise(training({ ...wanted("refused", 1), folder: at }, () => undefined)))

  it("of two classes learns them and writes a model that the service opens", async () => {
    const heard: Array<TrainingProgress> = []
    const lines = await Effect.runPromise(training(wanted("model", 8), (one) => heard.push(one)))
    expect(lines).toEqual([
      expect.stringMatching(/^held out: [\d.]+ % of 24 images correct$/),
      `1 file left out that cannot be read: ${names[0]}/broken.jpg`,
    ])
    expect(heard.some((one) => one.kind === "at" && one.label === "images")).toBe(true)
    expect(heard.filter((one) => one.kind === "line")).toHaveLength(9)
    const out = join(folder, "model")
    expect(readdirSync(out).sort()).toEqual([
      "class_indices.json",
      "metrics.json",
      "model.json",
      "weights.bin",
    ])
    const metrics = JSON.parse(readFileSync(join(out, "metrics.json"), "utf8"))
    expect(metrics.accuracy).toBeGreaterThan(0.8)
    expect(Object.keys(metrics.recall)).toEqual(names)
    expect(metrics.confusion.flat().reduce((sum: number, one: number) => sum + one, 0)).toBe(24)
    expect(metrics.dataset_sha256).toMatch(/^[0-9a-f]{64}$/)
    expect(metrics.skipped).toBe(1)
    expect(metrics.command).toBe("almanac plant train DIR --seed 3 --epochs 8")

    const opened = await Effect.runPromise(
      openModel({
        model_path: join(out, "model.json"),
        classes_path: "",
        cache_dir: join(folder, "cache"),
      }),
    )
    expect(opened.info.classes).toEqual(names)
    const { onnx_path, input, output } = opened
    const session = await openSession({
      network: { onnx_path, input, output },
      threads: 1,
      batch_max: 1,
    })
    const images = names.flatMap((name, label) =>
      [900, 901, 902, 903, 904, 905].map((seed) => ({
        label,
        bytes: drawLeaf(demo_classes.indexOf(name), seed, side),
      })),
    )
    let right = 0
    for (const { label, bytes } of images) {
      const tensor = new Float32Array(tensor_length)
      for (const [i, byte] of bytes.entries()) tensor[i] = byte / 255
      const [row] = await session.run([tensor])
      if (row === undefined || typeof row === "string") throw new Error(row)
      if (row.indexOf(Math.max(...row)) === label) right++
    }
    await session.end()
    expect(right).toBeGreaterThan(9)
  })

  it("of fewer images than a batch uses all of them", async () => {
    const heard: Array<TrainingProgress> = []
    const few = { ...wanted("few", 1), share: 0.9 }
    await Effect.runPromise(training(few, (one) => heard.push(one)))
    const lines = heard.flatMap((one) => (one.kind === "line" ? [one.text] : []))
    expect(lines.at(-1)).toMatch(/^epoch 1 of 1: loss (0\.[1-9]|[1-9])/)
  })

  it("splits the readable images: each class has some for training and some held out", async () => {
    const at = await writeSome({ "x/a": [2, 3], "y/b": [2, 2] })
    const job = { ...wanted("divided", 1), folder: at }
    expect(await Effect.runPromise(training(job, () => undefined))).toEqual([
      expect.stringMatching(/^held out: [\d.]+ % of 2 images correct$/),
      "5 files left out that cannot be read: x/a0.jpg, x/a1.jpg, x/a2.jpg, y/b0.jpg, y/b1.jpg",
    ])
    const metrics = JSON.parse(readFileSync(join(job.out, "metrics.json"), "utf8"))
    expect(metrics.trained_on).toBe("2 images, each 1 times")
    expect(metrics.recall).toEqual({ x: expect.any(Number), y: expect.any(Number) })
  })

  it("of a class with one readable image reports that nothing of it is held out", async () => {
    const at = await writeSome({ "x/a": [3, 0], "y/a": [1, 4] })
    const job = { ...wanted("one", 1), folder: at }
    const lines = await Effect.runPromise(training(job, () => undefined))
    expect(lines.slice(1)).toEqual([
      "no images are held out of the class y",
      expect.stringMatching(/^4 files left out that cannot be read: y\/a/),
    ])
  })

  it("accepts a class without held-out images and reports it", async () => {
    const at = await writeSome({ "train/x/a": [2, 0], "train/y/a": [2, 0], "valid/x/a": [1, 0] })
    const job = { ...wanted("apart", 1), folder: at }
    expect(await Effect.runPromise(training(job, () => undefined))).toEqual([
      expect.stringMatching(/^held out: [\d.]+ % of 1 images correct$/),
      "no images are held out of the class y",
    ])
  })

  it("fails and names the class if none of its images can be read", async () => {
    const sound = { "x/a": [2, 1], "y/a": [2, 0] } as const
    const train = { "train/x/a": [2, 1], "train/y/a": [2, 0] } as const
    const odd = Object.fromEntries(
      "abcdefg".split("").map((name) => [`${name}/1`, [0, 1] as const]),
    )
    for (const [files, below, classes] of [
      [{ ...sound, "blank/a": [0, 3] }, "", "class blank"],
      [{ ...sound, "blank/a": [0, 1], "zero\n/a": [0, 2] }, "", "classes blank, zero?"],
      [{ ...sound, ...odd }, "", "classes a, b, c, d, e and 2 more"],
      [{ ...train, "train/z/a": [0, 4], "valid/z/a": [3, 0] }, "/train", "class z"],
      [{ ...train, "valid/x/a": [2, 0], "valid/y/a": [0, 2] }, "/valid", "class y"],
    ] satisfies ReadonlyArray<readonly [Files, string, string]>) {
      const at = await writeSome(files)
      expect(await refusedOf(at)).toBe(`no image can be read in ${at}${below} of the ${classes}`)
      expect(existsSync(join(folder, "refused"))).toBe(false)
    }
  })

  it("fails if no image can be read, but not if some can", async () => {
    const none = await writeSome({ "x/a": [0, 3], "y/a": [0, 2] })
    expect(await refusedOf(none)).toBe(`no image in ${none} can be read`)
    const apart = await writeSome({ "train/x/a": [0, 2], "train/y/a": [0, 2], "valid/x/a": [0, 1] })
    expect(await refusedOf(apart)).toBe(`no image in ${apart} can be read`)
    // The readable ones are held out.
    const held = await writeSome({ "train/x/a": [0, 2], "train/y/a": [0, 2], "valid/x/a": [1, 0] })
    const message = `no image can be read in ${held}/train of the classes x, y`
    expect(await refusedOf(held)).toBe(message)
  })

  it("does not overwrite an existing folder", async () => {
    mkdirSync(join(folder, "taken"))
    await writeFile(join(folder, "taken", "mine.txt"), "mine")
    const exit = await Effect.runPromiseExit(training(wanted("taken", 1), () => undefined))
    expect(Exit.isFailure(exit) && String(exit.cause)).toMatch(/not empty: choose another folder/)
    expect(readdirSync(join(folder, "taken"))).toEqual(["mine.txt"])
  })

  it("that is interrupted leaves nothing behind", async () => {
    const stopped = await Effect.runPromise(
      Effect.gen(function* () {
        const begun = Promise.withResolvers<void>()
        const hear = ({ kind }: TrainingProgress) => kind === "at" && begun.resolve()
        const running = yield* Effect.forkChild(training(wanted("stopped", 1000), hear))
        yield* Effect.promise(() => begun.promise)
        yield* Fiber.interrupt(running)
        return readdirSync(folder).filter((name) => name.startsWith("stopped"))
      }),
    )
    expect(stopped).toEqual([])
  })

  it("removes the folder of a killed training, but not of a running one", async () => {
    // The first id belongs to no process, the second to this one.
    const [dead, alive] = ["next.partial-999999999", `next.partial-${process.ppid}`]
    for (const name of [dead, alive]) mkdirSync(join(folder, name))
    const absent = { ...wanted("next", 1), folder: join(folder, "absent") }
    const exit = await Effect.runPromiseExit(training(absent, () => undefined))
    expect(Exit.isFailure(exit) && String(exit.cause)).toMatch(/the folder/)
    expect(existsSync(join(folder, dead))).toBe(false)
    expect(existsSync(join(folder, alive))).toBe(true)
    expect(existsSync(join(folder, "next"))).toBe(false)
  })
})
