/** Files written by real Keras: the converted network's outputs agree with Keras's. */
import { mkdirSync } from "node:fs"
import { describe, expect, it } from "vitest"
import { readKerasZip } from "../keras/archive.ts"
import { readKerasH5 } from "../keras/h5.ts"
import { decode } from "../weight.ts"
import { difference, expected, fixture, newPath, runNetwork } from "./run-network.ts"

const read = (name: string) => {
  const folder = newPath("folder")
  mkdirSync(folder)
  const path = fixture(name)
  return name.endsWith(".keras") ? readKerasZip(path, folder) : readKerasH5(path)
}

/** A single sigmoid becomes two classes. */
const asTwoClasses = (values: ReadonlyArray<number>) => {
  const [only = 0] = values
  return values.length === 1 ? [1 - only, only] : values
}

describe("a file of Keras", () => {
  for (const [name, wanted] of Object.entries(expected)) {
    it(`${name} agrees with Keras to 1e-5`, async () => {
      const { values } = await runNetwork(await read(name))
      expect(difference(values, asTwoClasses(wanted))).toBeLessThan(1e-5)
    })
  }

  it("does not agree with another network", async () => {
    const { values } = await runNetwork(await read("small.h5"))
    const [one, other] = [values, expected["merged.h5"] ?? []]
    expect(difference(one, other)).toBeGreaterThan(1e-2)
  })
})

describe("a weight", () => {
  const bytes = (...values: ReadonlyArray<number>) => Uint8Array.from(values)

  it("is decoded from each type, at any offset in its buffer", () => {
    const half = bytes(9, 0x00, 0x3c, 0x01, 0x3c, 0x00, 0xc0, 0x01, 0x00).subarray(1, 9)
    expect([...decode(half.subarray(0, 6), "float16")]).toEqual([1, 1 + 2 ** -10, -2])
    expect([...decode(bytes(0x80, 0x3f, 0x81, 0x3f, 0, 0xc0), "bfloat16")]).toEqual([
      1,
      1 + 2 ** -7,
      -2,
    ])
    expect([...decode(bytes(9, 0xff, 0x80).subarray(1), "int8")]).toEqual([-1, -128])
    expect([...decode(bytes(9, 0xff, 0xff).subarray(1), "uint16")]).toEqual([65_535])
    expect([...decode(new Uint8Array(Float64Array.of(0.5).buffer), "float64")]).toEqual([0.5])
  })
})

describe("the description of a network", () => {
  const convert = async (name: string) => (await runNetwork(await read(name))).converted

  it("has the number of weights without the optimizer's", async () => {
    expect((await convert("small.h5")).parameters).toBe(1965)
    expect((await convert("small.keras")).parameters).toBe(1965)
    expect((await convert("k2-small.h5")).parameters).toBe(1965)
  })

  it("has the activation of the outputs and the number of classes", async () => {
    const [small, binary] = [await convert("small.h5"), await convert("binary.keras")]
    expect([small.classes, small.activation]).toEqual([4, "softmax"])
    expect([binary.classes, binary.activation]).toEqual([2, "softmax"])
  })

  it("says whether the network rescales bytes itself", async () => {
    expect((await convert("small.keras")).has_rescaling).toBe(true)
    expect((await convert("merged.keras")).has_rescaling).toBe(false)
    expect((await convert("nested.keras")).has_rescaling).toBe(false)
  })
})
