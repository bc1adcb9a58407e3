/** The memory that the conversion of a large network needs. */
import { fork } from "node:child_process"
import { mkdirSync, readFileSync, rmSync, statSync } from "node:fs"
import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import type { ModelFormat } from "../model-file.ts"
import type { ConversionResponse } from "../prepared-model.ts"
import { fixture, newPath, runOnnx } from "./run-network.ts"
import { tutorial_parameters, writeTutorialNetwork } from "./tutorial-network.ts"

const program = join(import.meta.dirname, "conversion-memory.ts")
const weights_bytes = tutorial_parameters * 4

/** Converts in a child process and returns its peak memory. */
const convertInChild = async (folder: string, path: string, format: ModelFormat) => {
  mkdirSync(folder)
  const peak_path = join(folder, "peak")
  const child = fork(program, [peak_path], { stdio: ["ignore", "ignore", "ignore", "ipc"] })
  const response = new Promise<ConversionResponse>((resolve, reject) => {
    // It sends one message.
    child.once("message", (message) => resolve(message as ConversionResponse))
    child.once("exit", (code) => reject(new Error(`ended with ${code}`)))
  })
  const exit = new Promise((resolve) => child.once("exit", resolve))
  child.send({ path, format, folder, onnx_path: join(folder, "model.onnx") })
  const answer = await response
  await exit
  return { answer, peak_bytes: Number(readFileSync(peak_path, "utf8")) }
}

describe("the tutorial's network of 47.8 million weights", () => {
  const path = newPath("plant_disease_prediction_model.h5")
  beforeAll(() => writeTutorialNetwork(path))
  afterAll(() => rmSync(path))

  it("needs at most half its weights more memory than a tiny one, and runs", async () => {
    const tiny = await convertInChild(newPath("tiny"), fixture("small.h5"), "keras-h5")
    const folder = newPath("large")
    const { answer, peak_bytes } = await convertInChild(folder, path, "keras-h5")
    if (!("prepared" in answer)) throw new Error(answer.detail)
    expect(answer.prepared.parameters).toBe(tutorial_parameters)
    expect(answer.prepared.output).toMatchObject({ classes: 38, is_softmax: true })
    expect(peak_bytes).toBeLessThan(1.5 * weights_bytes)
    expect(peak_bytes - tiny.peak_bytes).toBeLessThan(weights_bytes / 2)
    const onnx = join(folder, "model.onnx")
    expect(statSync(onnx).size - weights_bytes).toBeLessThan(10_000)
    const probabilities = await runOnnx(onnx, answer.prepared.output.name)
    expect(probabilities).toHaveLength(38)
    expect(probabilities.reduce((sum, value) => sum + value, 0)).toBeCloseTo(1, 4)
    expect(Math.max(...probabilities)).toBeGreaterThan(1.2 / 38)
    rmSync(folder, { recursive: true })
  })
})
