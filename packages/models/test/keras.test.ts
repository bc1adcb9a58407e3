/** Files that real Keras wrote: what ONNX Runtime answers is what Keras answered. */
import { mkdirSync } from "node:fs"
import { describe, expect, it } from "vitest"
import { readKerasZip } from "../keras/archive.ts"
import { readKerasH5 } from "../keras/h5.ts"
import { decoded } from "../weight.ts"
import { difference, expected, fixture, newPlace, runNetwork } from "./converted.ts"

const read = (name: string) => {
  const folder = newPlace("folder")
  mkdirSync(folder)
  const path = fixture(name)
  return name.endsWith(".keras") ? readKerasZip(path, folder) : readKerasH5(path)
}

/** Of one sigmoid two classes are made. */
const both = (values: ReadonlyArray<number>) => {
  const [only = 0] = values
  return values.length === 1 ? [1 - only, only] : values
}

describe("a file of Keras", () => {
  for (const [name, wanted] of Object.entries(expected)) {
    it(`${name} is answered as Keras answers it, to 1e-5`, async () => {
      const { values } = await runNetwork(await read(name))
      expect(difference(values, both(wanted))).toBeLessThan(1e-5)
    })
  }

  it("answers nothing alike where the image is another", async () => {
    const { values } = await runNetwork(await read("small.h5"))
    const [one, other] = [values, expected["merged.h5"] ?? []]
    expect(difference(one, other)).toBeGreaterThan(1e-2)
  })
})

describe("a weight", () => {
  const bytes = (...values: ReadonlyArray<number>) => Uint8Array.from(values)

  it("is read of each type, wherever it begins in its buffer", () => {
    const half = bytes(9, 0x00, 0x3c, 0x01, 0x3c, 0x00, 0xc0, 0x01, 0x00).subarray(1, 9)
    expect([...decoded(half.subarray(0, 6), "float16")]).toEqual([1, 1 + 2 ** -10, -2])
    expect([...decoded(bytes(0x80, 0x3f, 0x81, 0x3f, 0, 0xc0), "bfloat16")]).toEqual([
      1,
      1 + 2 ** -7,
      -2,
    ])
    expect([...decoded(bytes(9, 0xff, 0x80).subarray(1), "int8")]).toEqual([-1, -128])
    expect([...decoded(bytes(9, 0xff, 0xff).subarray(1), "uint16")]).toEqual([65_535])
    expect([...decoded(new Uint8Array(Float64Array.of(0.5).buffer), "float64")]).toEqual([0.5])
  })
})

describe("what is known of a network", () => {
  const about = async (name: string) => (await runNetwork(await read(name))).converted

  it("is how many weights it has, the optimizer's not counted", async () => {
    expect((await about("small.h5")).parameters).toBe(1965)
    expect((await about("small.keras")).parameters).toBe(1965)
    expect((await about("k2-small.h5")).parameters).toBe(1965)
  })

  it("is what makes its outputs, and how many classes they are", async () => {
    const [small, binary] = [await about("small.h5"), await about("binary.keras")]
    expect([small.classes, small.activation]).toEqual([4, "softmax"])
    expect([binary.classes, binary.activation]).toEqual([2, "softmax"])
  })

  it("is whether it divides bytes of colour itself", async () => {
    expect((await about("small.keras")).has_rescaling).toBe(true)
    expect((await about("merged.keras")).has_rescaling).toBe(false)
    expect((await about("nested.keras")).has_rescaling).toBe(false)
  })
})
