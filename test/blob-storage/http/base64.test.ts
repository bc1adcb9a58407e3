/** Compares the incremental base64 decoder with one that decodes the whole text. */
import { describe, expect, it } from "vitest"
import { base64Decoder } from "#gateway/blob-storage/body/base64.ts"
import { noise } from "../../contract/blob-storage/engine-bytes.ts"
import { base64 } from "../../world/blob-storage/service.ts"
import { seeded } from "../../world/seeded.ts"

const seed = 8

/** RFC 4648 §4 and §5, bit by bit; undefined if the text is not base64. */
const naive = (text: string) => {
  const [, digits = "", padding = ""] = /^([\w+/-]*)(={0,2})$/.exec(text) ?? []
  if (digits + padding !== text) return undefined
  if (padding !== "" && (digits.length + padding.length) % 4 !== 0) return undefined
  if (digits.length % 4 === 1) return undefined
  const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
  let bits = ""
  for (const digit of digits.replaceAll("-", "+").replaceAll("_", "/")) {
    const value = alphabet.indexOf(digit)
    if (value === -1) return undefined
    bits += value.toString(2).padStart(6, "0")
  }
  const whole = bits.length - (bits.length % 8)
  if (/1/.test(bits.slice(whole))) return undefined
  return Buffer.from(
    bits
      .slice(0, whole)
      .match(/.{8}/g)
      ?.map((byte) => Number(`0b${byte}`)) ?? [],
  )
}

const decode = (text: string, cuts: ReadonlyArray<number>, is_sunk = false) => {
  const sunk: Array<Uint8Array> = []
  const decoder = base64Decoder(is_sunk ? (piece) => sunk.push(piece) : undefined)
  const bytes = Buffer.from(text, "utf8")
  let from = 0
  for (const cut of [...cuts, bytes.length]) {
    decoder.push(bytes.subarray(from, cut))
    from = cut
  }
  const rest = decoder.end()
  return rest && Buffer.concat([...sunk, ...rest])
}

describe("base64 in pieces", () => {
  const { next, pick } = seeded(seed)
  const below = (count: number) => Math.floor(next() * count)

  it(`is read as one text is, sound or not (seed ${seed})`, () => {
    const marks = ["=", "==", "===", "-", "_", "+", "/", " ", "\n", "!", "é", "A", "B"] as const
    let sound = 0
    for (let round = 0; round < 20_000; round++) {
      let text = base64(noise(round, below(12)))
      if (next() < 0.3) text = text.replace(/=+$/, "")
      if (next() < 0.5) {
        const at = below(text.length + 1)
        text = text.slice(0, at) + pick(marks) + text.slice(at + below(3))
      }
      const bytes = Buffer.byteLength(text)
      const cuts = Array.from({ length: below(4) }, () => below(bytes + 1)).toSorted(
        (a, b) => a - b,
      )
      const expected = naive(text)
      if (expected !== undefined) sound += 1
      expect(decode(text, cuts), JSON.stringify([text, cuts])).toEqual(expected)
    }
    expect(sound).toBeGreaterThan(5000)
    expect(sound).toBeLessThan(19_000)
  })

  it("is the same in pieces of many sizes, kept or handed on", () => {
    const bytes = Buffer.from(noise(1, 3_000_001))
    const text = base64(bytes)
    for (const size of [1001, 65_533, 65_536, 1_400_000, text.length]) {
      const cuts = Array.from(
        { length: Math.ceil(text.length / size) - 1 },
        (_, n) => size * (n + 1),
      )
      for (const is_sunk of [false, true]) {
        expect(decode(text, cuts, is_sunk)?.equals(bytes)).toBe(true)
      }
    }
  })

  it("hands on what is full while the rest comes", () => {
    const sunk: Array<number> = []
    const decoder = base64Decoder((piece) => sunk.push(piece.length))
    const part = Buffer.from(base64(noise(2, 48 * 1024)))
    for (let count = 0; count < 100; count++) decoder.push(part)
    const handed = sunk.reduce((sum, length) => sum + length, 0)
    expect(handed).toBeGreaterThan(98 * 48 * 1024 - 256 * 1024)
    expect(Math.max(...sunk)).toBeLessThanOrEqual(256 * 1024)
    expect(decoder.end()).toBeDefined()
  })
})
