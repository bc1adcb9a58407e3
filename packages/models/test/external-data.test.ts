/** An .onnx with external data, as PyTorch writes it. */
import { createHash } from "node:crypto"
import { mkdirSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { Effect } from "effect"
import { describe, expect, it } from "vitest"
import { externalDataFiles } from "../onnx/external-data.ts"
import { concat, integer, message, text } from "../onnx/protobuf.ts"
import { openModel } from "../open-model.ts"
import { newPath } from "./run-network.ts"

const node = (type: string, inputs: ReadonlyArray<string>, output: string) =>
  message(1, ...inputs.map((one) => text(1, one)), text(2, output), text(4, type))
const valueInfo = (place: number, name: string, sides: ReadonlyArray<number | string>) => {
  const dims = sides.map((side) =>
    message(1, typeof side === "string" ? text(2, side) : integer(1, side)),
  )
  return message(place, text(1, name), message(2, message(1, integer(1, 1), message(2, ...dims))))
}

/** Multiplies the mean colours by nine weights, which are in `location`. */
const onnxOf = (location: string) => {
  const external = message(13, text(1, "location"), text(2, location))
  const sides = [integer(1, 3), integer(1, 3)]
  const graph = message(
    7,
    node("GlobalAveragePool", ["x"], "p"),
    node("Flatten", ["p"], "f"),
    node("MatMul", ["f", "W"], "y"),
    text(2, "g"),
    message(5, ...sides, integer(2, 1), text(8, "W"), external, integer(14, 1)),
    valueInfo(11, "x", ["N", 3, 224, 224]),
    valueInfo(12, "y", ["N", 3]),
  )
  return concat(integer(1, 8), graph, message(8, text(1, ""), integer(2, 17)))
}
const weightsOf = (factor: number) =>
  Buffer.from(Float32Array.of(factor, 0, 0, 0, 1, 0, 0, 0, 1).buffer)

const folderOf = (location = "leaf.onnx.data", factor = 1) => {
  const folder = newPath("external")
  mkdirSync(folder)
  writeFileSync(join(folder, "leaf.onnx"), onnxOf(location))
  writeFileSync(join(folder, "class_indices.json"), '["a","b","c"]')
  if (!location.includes("/")) writeFileSync(join(folder, location), weightsOf(factor))
  return folder
}
const opening = (folder: string) =>
  openModel({
    model_path: join(folder, "leaf.onnx"),
    classes_path: "",
    cache_dir: newPath("cache"),
  })
const open = (folder: string) => Effect.runPromise(opening(folder))
const errorOf = async (folder: string) =>
  (await Effect.runPromise(Effect.flip(opening(folder)))).detail

describe("an .onnx with external data", () => {
  it("is described by the size and hash of all its files", async () => {
    const { info, output } = await open(folderOf())
    const bytes = Buffer.concat([onnxOf("leaf.onnx.data"), weightsOf(1)])
    expect(info.bytes).toBe(bytes.length)
    expect(info.sha256).toBe(createHash("sha256").update(bytes).digest("hex"))
    // Known only from a run.
    expect(output).toMatchObject({ classes: 3, activation: "none" })
  })

  it("is another model with other weights", async () => {
    const [one, other] = [await open(folderOf()), await open(folderOf("leaf.onnx.data", 2))]
    expect(one.info.sha256).not.toBe(other.info.sha256)
    expect(one.info.bytes).toBe(other.info.bytes)
  })

  it("is rejected if a file is missing", async () => {
    const folder = folderOf()
    rmSync(join(folder, "leaf.onnx.data"))
    expect(await errorOf(folder)).toBe(
      `The model's weights in ${join(folder, "leaf.onnx.data")} cannot be used: ` +
        "the file does not exist.",
    )
  })

  it.each(["../other.data", "/other.data"])(
    "is rejected if its data is in %s",
    async (location) => {
      expect(await errorOf(folderOf(location))).toBe(
        `The ONNX model's weights are in ${location}, which is outside its folder.`,
      )
    },
  )
})

describe("external data files", () => {
  const namesIn = async (bytes: Uint8Array) => {
    const folder = newPath("named")
    mkdirSync(folder)
    const path = join(folder, "a.onnx")
    writeFileSync(path, bytes)
    return (await externalDataFiles(path)).map((each) => each.slice(folder.length + 1))
  }

  it("are found once each, in order, also across the chunks of a read", async () => {
    const long = "w".repeat(200)
    for (const before of [0, 2 ** 20 - 9, 2 ** 20 - 3, 2 ** 20 + 5]) {
      const bytes = concat(Buffer.alloc(before), onnxOf("b.data"), onnxOf(long), onnxOf("b.data"))
      expect(await namesIn(bytes)).toEqual(["b.data", long])
    }
  })

  it("are not found where the key has another meaning", async () => {
    expect(await namesIn(Buffer.from("location of the leaf\n\x08location"))).toEqual([])
  })
})
