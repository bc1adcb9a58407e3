/** A large network: converted in pieces, run whole. */
import { fork } from "node:child_process"
import { mkdirSync, readFileSync, rmSync, statSync } from "node:fs"
import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import type { ModelFormat } from "../model-file.ts"
import type { Answered } from "../prepared.ts"
import { fixture, newPlace, runOnnx } from "./converted.ts"
import { tutorial_parameters, writeTutorialNetwork } from "./tutorial-network.ts"

const program = join(import.meta.dirname, "conversion-memory.ts")
const weights_bytes = tutorial_parameters * 4

/** Converts in a process, and tells the most memory that it had. */
const convertedIn = async (folder: string, path: string, format: ModelFormat) => {
  mkdirSync(folder)
  const said = join(folder, "peak")
  const child = fork(program, [said], { stdio: ["ignore", "ignore", "ignore", "ipc"] })
  const answered = new Promise<Answered>((resolve, reject) => {
    // It says one thing.
    child.once("message", (message) => resolve(message as Answered))
    child.once("exit", (code) => reject(new Error(`ended with ${code}`)))
  })
  const ended = new Promise((resolve) => child.once("exit", resolve))
  child.send({ path, format, folder, onnx_path: join(folder, "model.onnx") })
  const answer = await answered
  await ended
  return { answer, peak_bytes: Number(readFileSync(said, "utf8")) }
}

describe("the tutorial's network of 47.8 million weights", () => {
  const path = newPlace("plant_disease_prediction_model.h5")
  beforeAll(() => writeTutorialNetwork(path))
  afterAll(() => rmSync(path))

  it("is converted within half of its weights more memory than a tiny one, and runs", async () => {
    const tiny = await convertedIn(newPlace("tiny"), fixture("small.h5"), "keras-h5")
    const folder = newPlace("large")
    const { answer, peak_bytes } = await convertedIn(folder, path, "keras-h5")
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
