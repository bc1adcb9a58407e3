/** Converts a network in the test's own process, and runs it. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { gunzipSync } from "node:zlib"
import { InferenceSession, Tensor } from "onnxruntime-node"
import { convertKeras } from "../keras/graph.ts"
import type { Network } from "../network.ts"
import { writeOnnx } from "../onnx/writer.ts"

const folder = mkdtempSync(join(tmpdir(), "almanac-models-"))
process.once("exit", () => rmSync(folder, { recursive: true, force: true }))

let places = 0
export const newPlace = (name: string) => join(folder, `${places++}-${name}`)

/** The pattern that `fixtures/make.py` computes too, float32[1, 224, 224, 3]. */
export const image = Float32Array.from(
  { length: 224 * 224 * 3 },
  (_, place) => ((place * 7919) % 256) / 255,
)

const fixtures = join(import.meta.dirname, "fixtures")

/** What real Keras 3, and Keras 2 in TensorFlow, computed of each fixture and the image. */
export const expected: Readonly<Record<string, ReadonlyArray<number>>> = Object.assign(
  {},
  ...["expected.json", "expected-keras-2.json"].map((name) =>
    JSON.parse(readFileSync(join(fixtures, name), "utf8")),
  ),
)

export const fixtureBytes = (name: string) => gunzipSync(readFileSync(join(fixtures, `${name}.gz`)))

/** The fixture as a file of its name. */
export const fixture = (name: string) => {
  const path = newPlace(name)
  writeFileSync(path, fixtureBytes(name))
  return path
}

export const runOnnx = async (
  path: string,
  output: string,
  input: Readonly<Record<string, Tensor>> = {
    input: new Tensor("float32", image, [1, 224, 224, 3]),
  },
) => {
  const session = await InferenceSession.create(path, { logSeverityLevel: 3 })
  try {
    const values = (await session.run(input, [output]))[output]?.data
    if (!(values instanceof Float32Array)) throw new Error("no float32 came out")
    return values
  } finally {
    await session.release()
  }
}

export const runNetwork = async (network: Network) => {
  const converted = convertKeras(network)
  const path = newPlace("network.onnx")
  writeOnnx(path, converted.graph)
  network.close()
  const values = await runOnnx(path, converted.graph.output.name)
  rmSync(path)
  return { values, converted }
}

/** The largest difference, relative where values are large. */
export const difference = (got: ArrayLike<number>, wanted: ArrayLike<number>) => {
  if (got.length !== wanted.length) return Number.POSITIVE_INFINITY
  return Array.from(got).reduce((largest, value, place) => {
    const other = wanted[place] ?? Number.NaN
    const apart = Math.abs(value - other) / Math.max(1, Math.abs(other))
    return Number.isNaN(apart) ? Number.POSITIVE_INFINITY : Math.max(largest, apart)
  }, 0)
}
