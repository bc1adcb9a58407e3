/** Converts and runs networks in the test's process. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { gunzipSync } from "node:zlib"
import { InferenceSession, Tensor } from "#onnx-runtime"
import { convertKeras } from "../keras/convert.ts"
import type { Network } from "../network.ts"
import { writeOnnx } from "../onnx/writer.ts"

const folder = mkdtempSync(join(tmpdir(), "almanac-models-"))
process.once("exit", () => rmSync(folder, { recursive: true, force: true }))

let places = 0
export const newPath = (name: string) => join(folder, `${places++}-${name}`)

/** The pattern that `make.py` of the fixtures computes too, float32[1, 224, 224, 3]. */
export const image = Float32Array.from(
  { length: 224 * 224 * 3 },
  (_, place) => ((place * 7919) % 256) / 255,
)

const fixtures = join(import.meta.dirname, "fixtures")
const folders = ["keras-2", "keras-3"]

/** The outputs that real Keras 2 and 3 computed for each fixture and the image. */
export const expected: Readonly<Record<string, ReadonlyArray<number>>> = Object.assign(
  {},
  ...folders.map((folder) =>
    JSON.parse(readFileSync(join(fixtures, folder, "expected.json"), "utf8")),
  ),
)

export const fixtureBytes = (name: string) => {
  const folder = name.startsWith("tf2.") ? "keras-2" : "keras-3"
  return gunzipSync(readFileSync(join(fixtures, folder, `${name}.gz`)))
}

/** Unpacks a fixture to a file of its name. */
export const fixture = (name: string) => {
  const path = newPath(name)
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
    if (!(values instanceof Float32Array)) throw new Error("the output is not float32")
    return values
  } finally {
    await session.release()
  }
}

export const runNetwork = async (network: Network) => {
  const converted = convertKeras(network)
  const path = newPath("network.onnx")
  writeOnnx(path, converted.graph)
  network.close()
  const values = await runOnnx(path, converted.graph.output.name)
  rmSync(path)
  return { values, converted }
}

/** The largest difference, relative for values above 1. */
export const difference = (got: ArrayLike<number>, wanted: ArrayLike<number>) => {
  if (got.length !== wanted.length) return Number.POSITIVE_INFINITY
  return Array.from(got).reduce((largest, value, place) => {
    const other = wanted[place] ?? Number.NaN
    const apart = Math.abs(value - other) / Math.max(1, Math.abs(other))
    return Number.isNaN(apart) ? Number.POSITIVE_INFINITY : Math.max(largest, apart)
  }, 0)
}
