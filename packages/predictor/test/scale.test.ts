/** The scaling of bytes to the network's input. */
import { describe, expect, it } from "vitest"
import { scaler, scales } from "../scale.ts"
import { random } from "./random.ts"

const pixels = 256
const next = random(11)
const image = () => Uint8Array.from({ length: pixels * 3 }, () => next(256))
/** Each byte value once in each channel. */
const all = Uint8Array.from({ length: pixels * 3 }, (_, n) => Math.floor(n / 3))

const formulas = {
  "0..1": (byte: number) => byte / 255,
  "-1..1": (byte: number) => byte / 127.5 - 1,
  "0..255": (byte: number) => byte,
}

describe.each(["0..1", "-1..1", "0..255"] as const)("bytes scaled to %s", (scale) => {
  const numberOf = (byte: number) => Math.fround(formulas[scale](byte))

  it("equal the 64-bit formula rounded to 32 bits", () => {
    expect(scales[scale]).toEqual(Float32Array.from({ length: 256 }, (_, byte) => numberOf(byte)))
    const { numbers, put } = scaler(scale, "NHWC", pixels, 1)
    put(all, 0)
    expect(numbers).toEqual(Float32Array.from(all, numberOf))
  })

  it("are written to the image's position, for NHWC and NCHW", () => {
    const [one, other] = [image(), image()]
    const rows = scaler(scale, "NHWC", pixels, 3)
    const planes = scaler(scale, "NCHW", pixels, 3)
    for (const { put } of [rows, planes]) {
      put(one, 2)
      put(other, 0)
    }
    const nothing = new Uint8Array(pixels * 3)
    const expected = (bytes: Uint8Array) => [...bytes].map(numberOf)
    const untouched = [...nothing].map(Number)
    expect([...rows.numbers]).toEqual([...expected(other), ...untouched, ...expected(one)])
    const planar = (bytes: Uint8Array) =>
      [0, 1, 2].flatMap((colour) => expected(bytes.filter((_, n) => n % 3 === colour)))
    expect([...planes.numbers]).toEqual([...planar(other), ...untouched, ...planar(one)])
  })
})
