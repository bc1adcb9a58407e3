/** The bundled demo model, run as the service runs it, on leaves outside its training set. */
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { Effect } from "effect"
import sharp from "sharp"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { demo_model, type OpenedModel, openModel } from "#models"
import { decode, openSession, resampler, type Session } from "#predictor"
import { side } from "#schemas/image-side.ts"
import {
  areaUnderCurve,
  demo_classes,
  drawLeaf,
  drawNegative,
  negative_kinds,
  not_a_leaf,
  randomOf,
  seedOf,
} from "#trainer"

/** Used by no training and no held-out leaf. */
const seed = 20_261_122
/** Not 224, so that images are resized. */
const photo_side = 288
const leaves = 150
const negatives_per_kind = 12
const bytes_max = 1024 * 1024

const folder = dirname(demo_model)
const cache_dir = mkdtempSync(join(tmpdir(), "almanac-demo-model-"))
const resized = resampler(side)
const read = (name: string) => JSON.parse(readFileSync(join(folder, name), "utf8"))

let model: OpenedModel
let session: Session

beforeAll(async () => {
  const paths = { model_path: demo_model, classes_path: "", cache_dir }
  model = await Effect.runPromise(openModel(paths))
  const { onnx_path, input, output } = model
  const network = { onnx_path, input, output }
  session = await openSession({ network, threads: 1, batch_max: 8 })
})

afterAll(async () => {
  await session?.end()
  rmSync(cache_dir, { recursive: true, force: true })
})

/** Encodes to JPEG and preprocesses as the service does. */
const tensorOf = async (rgb: Uint8Array) => {
  const raw = { width: photo_side, height: photo_side, channels: 3 } as const
  const jpeg = await sharp(rgb, { raw }).jpeg({ quality: 88 }).toBuffer()
  const decoded = await decode(jpeg, { pixels_max: 50_000_000, auto_orient: false })
  if ("problem" in decoded) throw new Error(decoded.detail)
  return Float32Array.from(resized(decoded, "bicubic"), (byte) => byte / 255)
}

const probabilitiesOf = async (pictures: ReadonlyArray<Uint8Array>) => {
  const rows: Array<Float32Array> = []
  for (const picture of pictures) {
    const [row] = await session.run([await tensorOf(picture)])
    if (row === undefined || typeof row === "string") throw new Error(row)
    rows.push(row)
  }
  return rows
}

describe("the demo model", () => {
  it("has the classes of the drawn leaves and is marked as a demo", () => {
    expect(model.info.classes).toEqual(demo_classes)
    expect(model.info.is_demo).toBe(true)
    expect(model.info.format).toBe("tfjs")
    expect(model.output).toMatchObject({ classes: 16, is_softmax: true })
  })

  it("is at most one megabyte", () => {
    const bytes = readdirSync(folder).map((name) => statSync(join(folder, name)).size)
    expect(bytes.reduce((sum, one) => sum + one, 0)).toBeLessThanOrEqual(bytes_max)
  })

  it("documents its training command and its metrics on held-out leaves", () => {
    const metrics = read("metrics.json")
    expect(metrics.command).toMatch(/^almanac plant train --demo --seed \d+ --epochs \d+ --leaves/)
    expect(metrics.accuracy).toBeGreaterThanOrEqual(0.9)
    expect(metrics.pictures).toBeGreaterThanOrEqual(1000)
    expect(Object.keys(metrics.recall)).toEqual(demo_classes)
    expect(metrics.not_a_leaf.held_back_kinds.auroc).toBeGreaterThanOrEqual(0.95)
    expect(Object.keys(metrics.not_a_leaf.held_back_kinds.by_kind)).toEqual(
      negative_kinds.held_back,
    )
  })

  it("classifies nine of ten new leaves and rejects other pictures", async () => {
    const last = demo_classes.indexOf(not_a_leaf)
    const labels = Array.from({ length: leaves }, (_, i) => i % last)
    const drawn = labels.map((label, i) => drawLeaf(label, seedOf(seed, i), photo_side))
    const of_leaves = await probabilitiesOf(drawn)
    const right = of_leaves.filter((row, i) => row.indexOf(Math.max(...row)) === labels[i]).length
    console.log(`${right} of ${leaves} fresh leaves right`)
    expect(right / leaves).toBeGreaterThanOrEqual(0.9)

    const noLeaf = (row: Float32Array) => row[last] ?? 0
    const below = of_leaves.map(noLeaf)
    const areaOf = async (kinds: ReadonlyArray<string>) => {
      const pictures = kinds.flatMap((kind, k) =>
        Array.from({ length: negatives_per_kind }, (_, i) =>
          drawNegative(kind, randomOf(seedOf(seed + k, i)), photo_side),
        ),
      )
      return areaUnderCurve((await probabilitiesOf(pictures)).map(noLeaf), below)
    }
    const trained = await areaOf(negative_kinds.trained)
    const held_back = await areaOf(negative_kinds.held_back)
    console.log(`AUROC ${trained.toFixed(4)}, of kinds never seen ${held_back.toFixed(4)}`)
    expect(trained).toBeGreaterThanOrEqual(0.95)
    expect(held_back).toBeGreaterThanOrEqual(0.95)
  }, 180_000)
})
