/** `almanac plant doctor` and `almanac plant convert` on the command line. */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { afterAll, describe, expect, it } from "vitest"
import {
  difference,
  expected,
  fixtureBytes,
  newPath,
  runOnnx,
} from "../../packages/models/test/run-network.ts"
import { cleanUp, newFolder, runVerb } from "../world/server/server.ts"

afterAll(cleanUp)

const folderWith = (files: Readonly<Record<string, Uint8Array | string>>) => {
  const folder = newPath("verb")
  mkdirSync(folder)
  for (const [name, bytes] of Object.entries(files)) writeFileSync(join(folder, name), bytes)
  return (name: string) => join(folder, name)
}

const classes = '{"a":0,"b":1,"c":2,"d":3}'

describe("almanac plant doctor", () => {
  it("describes a model, and confirms that its classes fit", async () => {
    const at = folderWith({ "leaf.h5": fixtureBytes("small.h5"), "class_indices.json": classes })
    const { code, stdout, stderr } = await runVerb(newFolder(), ["plant", "doctor", at("leaf.h5")])
    expect(stderr).toBe("")
    expect(code).toBe(0)
    expect(stdout).toMatch(/^model +leaf \(keras-h5\), 0\.1 MB, sha256 [0-9a-f]{64}$/m)
    expect(stdout).toMatch(/^layers +18; weights 1,965$/m)
    expect(stdout).toMatch(/^input +float32\[N, 224, 224, 3\]$/m)
    expect(stdout).toMatch(/^output +4 classes, probabilities that sum to one$/m)
    expect(stdout).toMatch(/^scale +the network divides by 255 itself/m)
    expect(stdout).toMatch(/^classes +4: a \.\.\. d$/m)
    expect(stdout).toMatch(/^dry run +[\d.]+ ms per image, the first [\d.]+ ms$/m)
  })

  it("ends with 1 where the classes do not fit", async () => {
    const at = folderWith({ "leaf.h5": fixtureBytes("small.h5"), "c.json": '["a","b"]' })
    const verb = ["plant", "doctor", at("leaf.h5"), at("c.json")]
    const { code, stdout, stderr } = await runVerb(newFolder(), verb)
    expect(code).toBe(1)
    expect(stdout).toMatch(/^bad +The class file has 2 classes, but the network has 4 outputs\.$/m)
    expect(stderr).toBe("almanac: the model cannot be served\n")
  })

  it("reports a damaged file in one line, without HDF5's own messages", async () => {
    const whole = fixtureBytes("small.h5")
    const at = folderWith({ "leaf.h5": whole.subarray(0, whole.length / 2) })
    const { code, stdout, stderr } = await runVerb(newFolder(), ["plant", "doctor", at("leaf.h5")])
    expect([code, stdout]).toEqual([1, ""])
    expect(stderr).toMatch(/^almanac: The model file is damaged[^\n]+\n$/)
  })
})

describe("almanac plant convert", () => {
  it("writes an ONNX file that answers as Keras does, and overwrites nothing", async () => {
    const at = folderWith({ "leaf.keras": fixtureBytes("nested.keras") })
    const verb = ["plant", "convert", at("leaf.keras"), "--out", at("leaf.onnx")]
    const { code, stdout } = await runVerb(newFolder(), verb)
    expect([code, stdout]).toEqual([0, `${at("leaf.onnx")}: 411 weights, 3 classes\n`])
    const [, name = ""] = /(identity_\d+)/.exec(readFileSync(at("leaf.onnx"), "latin1")) ?? []
    const values = await runOnnx(at("leaf.onnx"), name)
    expect(difference(values, expected["nested.keras"] ?? [])).toBeLessThan(1e-5)
    const again = await runVerb(newFolder(), verb)
    expect(again.code).toBe(1)
    expect(again.stderr).toBe(
      `almanac: ${at("leaf.onnx")} cannot be written: the file already exists\n`,
    )
  })

  it("leaves an .onnx as it is", async () => {
    const at = folderWith({ "leaf.onnx": "no model", "out.onnx": "" })
    const verb = ["plant", "convert", at("leaf.onnx"), "--out", at("new.onnx")]
    const { code } = await runVerb(newFolder(), verb)
    expect(code).toBe(1)
    expect(existsSync(at("new.onnx"))).toBe(false)
  })
})
