/** Gradients, optimizer steps, augmentation and metrics. */
import { spawnSync } from "node:child_process"
import { pathToFileURL } from "node:url"
import { beforeAll, describe, expect, it } from "vitest"
import { adamOf, rateAt } from "../adam.ts"
import { randomOf } from "../leaves/noise.ts"
import { initialWeights, type Network, type Weight } from "../network.ts"
import { gradientsOf } from "../optimizer.ts"
import { halve, picture_bytes, writeAugmented, writeNormalized } from "../pictures.ts"
import { areaUnderCurve, predictedClasses, scoreOf } from "../score.ts"
import { openTensors, type Tensors, tensors_missing } from "../tensors.ts"

/** Both strides, and an odd size. */
const network: Network = {
  convolutions: [
    { filters: 3, stride: 2 },
    { filters: 4, stride: 2 },
    { filters: 4, stride: 1 },
    { filters: 2, stride: 2 },
  ],
  units: 5,
  classes: 3,
}

describe("a gradient", () => {
  let tf: Tensors
  beforeAll(async () => {
    tf = await openTensors()
  })

  it("agrees with finite differences for each weight", () => {
    const random = randomOf(20)
    const weights = initialWeights(network, random)
    for (const { values } of weights)
      for (const i of values.keys()) values[i] = (values[i] ?? 0) + 0.02
    const images = Float32Array.from({ length: 2 * picture_bytes }, random)
    const batch = { images, labels: Int32Array.from([0, 2]) }
    const { gradients } = gradientsOf(tf, network, weights, batch)

    // Along the gradient the loss changes by the gradient's length, which only the correct one
    // does.
    const far = 2e-3
    for (const [index, { name }] of weights.entries()) {
      const gradient = gradients[index] ?? new Float32Array(0)
      const length = Math.hypot(...gradient)
      const moved = (by: number): ReadonlyArray<Weight> =>
        weights.map((weight, i) => ({
          ...weight,
          values:
            i === index
              ? weight.values.map((value, n) => value + (by * (gradient[n] ?? 0)) / length)
              : weight.values,
        }))
      const above = gradientsOf(tf, network, moved(far), batch).loss
      const below = gradientsOf(tf, network, moved(-far), batch).loss
      expect((above - below) / (2 * far) / length, name).toBeGreaterThan(0.97)
      expect((above - below) / (2 * far) / length, name).toBeLessThan(1.03)
    }
  })
})

describe("a step of Adam", () => {
  it("agrees with the algorithm in 64 bits", () => {
    const random = randomOf(4)
    const weight = Float32Array.from({ length: 7 }, () => random() - 0.5)
    const naive = [...weight].map((value) => ({ value, first: 0, second: 0 }))
    const adam = adamOf([7])
    for (let step = 1; step <= 20; step++) {
      const gradient = Float32Array.from({ length: 7 }, () => random() - 0.4)
      adam.step([weight], [gradient], 0.01)
      for (const [i, one] of naive.entries()) {
        const g = gradient[i] ?? 0
        one.first = 0.9 * one.first + 0.1 * g
        one.second = 0.999 * one.second + 0.001 * g * g
        const mean = one.first / (1 - 0.9 ** step)
        one.value -= (0.01 * mean) / (Math.sqrt(one.second / (1 - 0.999 ** step)) + 1e-7)
      }
    }
    for (const [i, { value }] of naive.entries()) expect(weight[i]).toBeCloseTo(value, 5)
  })

  it("has a small rate at first and at the end", () => {
    const rates = Array.from({ length: 1000 }, (_, step) => rateAt(step, 1000))
    expect(Math.max(...rates)).toBeCloseTo(1, 5)
    expect(rates[0]).toBeLessThan(0.05)
    expect(rates.at(-1)).toBeLessThan(0.001)
    expect(rates.every((rate) => rate > 0 && rate <= 1)).toBe(true)
  })
})

describe("a picture", () => {
  it("is downscaled to the mean of four pixels", () => {
    const random = randomOf(8)
    const full = Uint8Array.from({ length: picture_bytes * 4 }, () => random() * 256)
    const half = halve(full)
    for (const [row, column, c] of [
      [0, 0, 0],
      [3, 7, 1],
      [111, 111, 2],
      [60, 0, 1],
    ] as const) {
      const at = (y: number, x: number) => full[((row * 2 + y) * 224 + column * 2 + x) * 3 + c] ?? 0
      const mean = (at(0, 0) + at(0, 1) + at(1, 0) + at(1, 1)) / 4
      expect(half[(row * 112 + column) * 3 + c]).toBe(Math.floor(mean + 0.5))
    }
  })

  it("is augmented in eight orientations and different brightness, at most 1", () => {
    const random = randomOf(9)
    const picture = Uint8Array.from({ length: picture_bytes }, (_, i) => (i * 7) % 256)
    const plain = new Float32Array(picture_bytes)
    writeNormalized(picture, plain, 0)
    expect(plain[1]).toBeCloseTo(7 / 255, 6)
    const corners = new Set<number>()
    for (let i = 0; i < 60; i++) {
      const varied = new Float32Array(picture_bytes)
      writeAugmented(picture, varied, 0, random)
      expect(varied.every((value) => value >= 0 && value <= 1)).toBe(true)
      corners.add(Math.round((varied[0] ?? 0) / Math.max(1e-9, varied[3] ?? 0) / 0.05))
    }
    expect(corners.size).toBeGreaterThan(4)
  })
})

describe("the metrics", () => {
  it("count the predictions of each class", () => {
    const rows = [
      [0.7, 0.2, 0.1],
      [0.1, 0.8, 0.1],
      [0.6, 0.3, 0.1],
      [0.2, 0.2, 0.6],
    ]
    const probabilities = Float32Array.from(rows.flat())
    expect([...predictedClasses(probabilities, 3)]).toEqual([0, 1, 0, 2])
    const score = scoreOf(["a", "b", "c"], Uint16Array.from([0, 1, 1, 2]), probabilities)
    expect(score.accuracy).toBe(0.75)
    expect(score.recall).toEqual({ a: 1, b: 0.5, c: 1 })
    expect(score.confusion).toEqual([
      [1, 0, 0],
      [1, 1, 0],
      [0, 0, 1],
    ])
  })

  it("have no recall for a class without pictures", () => {
    const score = scoreOf(["a", "b"], Uint16Array.from([0]), Float32Array.from([1, 0]))
    expect(score.recall).toEqual({ a: 1, b: null })
  })

  it("have the AUROC that counting all pairs gives", () => {
    for (let seed = 0; seed < 40; seed++) {
      const random = randomOf(seed)
      const some = () =>
        Array.from({ length: 1 + Math.floor(random() * 30) }, () => Math.floor(random() * 9))
      const [above, below] = [some(), some()]
      let wins = 0
      for (const one of above) {
        for (const other of below) wins += one > other ? 1 : one === other ? 0.5 : 0
      }
      expect(areaUnderCurve(above, below), `seed ${seed}`).toBeCloseTo(
        wins / above.length / below.length,
        10,
      )
    }
    expect(areaUnderCurve([], [1])).toBe(0.5)
  })
})

describe("without the development packages", () => {
  it("says in one line how to install them", () => {
    const file = new URL("../tensors.ts", import.meta.url)
    const program = `
      import { registerHooks } from "node:module"
      const resolve = (specifier, context, next) => {
        if (!specifier.startsWith("@tensorflow/")) return next(specifier, context)
        throw Object.assign(new Error("no such package"), { code: "ERR_MODULE_NOT_FOUND" })
      }
      registerHooks({ resolve })
      const { openTensors } = await import(${JSON.stringify(pathToFileURL(file.pathname).href)})
      await openTensors().catch((error) => console.log(error.message))
    `
    const args = ["--input-type=module", "--eval", program]
    const { stdout } = spawnSync(process.execPath, args, { encoding: "utf8" })
    expect(stdout).toBe(`${tensors_missing}\n`)
    expect(tensors_missing).toContain("npm ci")
  })
})
