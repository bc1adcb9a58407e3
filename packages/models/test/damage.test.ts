/** Damaged model files: one line each, never a crash. */
import { mkdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { Effect, Result } from "effect"
import { describe, expect, it } from "vitest"
import { archiveOf } from "../../zip/test/archive.ts"
import { readKerasZip } from "../keras/archive.ts"
import { openModel } from "../opening.ts"
import { fixtureBytes, newPlace } from "./converted.ts"

const cache_dir = newPlace("cache")

const opened = async (name: string, bytes: Uint8Array, classes = 4) => {
  const folder = newPlace("damaged")
  mkdirSync(folder)
  const model_path = join(folder, name)
  writeFileSync(model_path, bytes)
  const names = Array.from({ length: classes }, (_, index) => `class ${index}`)
  writeFileSync(join(folder, "class_indices.json"), JSON.stringify(names))
  const opening = openModel({ model_path, classes_path: "", cache_dir })
  const result = await Effect.runPromise(Effect.result(opening))
  return Result.isSuccess(result) ? "opened" : result.failure.detail
}

const oneLine = /^[^\n\p{Cc}]{10,300}$/u

/** Bytes with a hundred of them turned, by a seed, from a place on. */
const flipped = (bytes: Buffer, seed: number) => {
  const turned = Buffer.from(bytes)
  let state = seed
  for (let n = 0; n < 100; n++) {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    const place = 16 + (state % (turned.length - 16))
    turned[place] = (turned[place] ?? 0) ^ (1 + (state >>> 24))
  }
  return turned
}

describe("a model file that is cut off", () => {
  for (const name of ["small.h5", "nested.keras"]) {
    const bytes = fixtureBytes(name)
    for (const share of [0.1, 0.999]) {
      it(`${name} at ${share * 100} per cent is told in one line`, async () => {
        const cut = bytes.subarray(0, Math.floor(bytes.length * share))
        const detail = await opened(name, cut)
        expect(detail).toMatch(oneLine)
        expect(detail).toContain("file is damaged")
      })
    }
  }
})

describe("a zip archive", () => {
  const failing = async (bytes: Uint8Array) => {
    const path = newPlace("failing.keras")
    writeFileSync(path, bytes)
    const folder = newPlace("folder")
    mkdirSync(folder)
    return readKerasZip(path, folder).then(
      () => "read",
      ({ detail }) => String(detail),
    )
  }
  const damaged = "The .keras file is damaged: it is no whole zip archive."

  it("that is cut off anywhere is damaged", async () => {
    const whole = fixtureBytes("deflated.keras")
    const details = new Set<string>()
    for (let bytes = 0; bytes < whole.length; bytes += 23) {
      details.add(await failing(whole.subarray(0, bytes)))
    }
    expect([...details]).toEqual([damaged])
  })

  for (const name of ["nested.keras", "deflated.keras"]) {
    it(`with one letter of its configuration changed is damaged: ${name}`, async () => {
      const bytes = fixtureBytes(name)
      const place = bytes.indexOf("config.json") + 200
      bytes.writeUInt8(bytes.readUInt8(place) ^ 1, place)
      expect(await failing(bytes)).toBe(damaged)
    })
  }

  it("unpacks to no more than its bounds", async () => {
    const content = Buffer.from("{}")
    const config = { name: "config.json", content, bytes: 65 * 2 ** 20 }
    expect(await failing(archiveOf([config]))).toBe("Its config.json has more than 64 MB.")
    const weights = { name: "model.weights.h5", content, bytes: 9 * 2 ** 30 }
    const model = JSON.stringify({
      class_name: "Sequential",
      config: { layers: [{ class_name: "InputLayer", config: { name: "i" } }] },
    })
    const parts = [{ name: "config.json", content: Buffer.from(model) }, weights]
    expect(await failing(archiveOf(parts, true))).toBe(
      "Its model.weights.h5 has more than 8192 MB.",
    )
  })
})

describe("a model file with a hundred bytes turned", () => {
  for (const seed of [1, 2]) {
    it(`is told, or opened where weights only were hit: .h5, seed ${seed}`, async () => {
      expect(await opened("small.h5", flipped(fixtureBytes("small.h5"), seed))).toMatch(
        /^opened$|^[^\n\p{Cc}]{10,300}$/u,
      )
    })
    it(`is told in one line: .keras, seed ${seed}`, async () => {
      const detail = await opened("nested.keras", flipped(fixtureBytes("deflated.keras"), seed))
      expect(detail).toMatch(oneLine)
    })
  }
})

describe("a file that is no model", () => {
  const others: Readonly<Record<string, readonly [string, Uint8Array, RegExp]>> = {
    "an empty one": ["a.h5", Buffer.alloc(0), /is empty/],
    "a picture": ["a.h5", Buffer.from("\x89PNG\r\n\x1a\n and more", "latin1"), /does not begin as/],
    "a text": ["a.txt", Buffer.from("hello, world, hello"), /is not a Keras \.h5 or \.keras/],
    "one of PyTorch": ["a.pth", Buffer.from("PK\x03\x04 and more"), /PyTorch.*torch.onnx/],
    "a .tflite": ["a.tflite", Buffer.from("\x1c\x00\x00\x00TFL3 and more", "latin1"), /tflite/],
    "another zip": [
      "a.keras",
      archiveOf([{ name: "hello.txt", content: Buffer.alloc(0) }]),
      /no config\.json/,
    ],
    "weights only": ["a.h5", fixtureBytes("only.weights.h5"), /holds weights only.*model\.save/],
    "an .onnx of nothing": ["a.onnx", Buffer.alloc(100, 1), /onnx/],
    "a JSON of nothing": ["model.json", Buffer.from('{"a":1}'), /layers model of tfjs/],
    "half a JSON": ["model.json", Buffer.from('{"format":"layers-model","modelTo'), /JSON/],
  }
  for (const [what, [name, bytes, reason]] of Object.entries(others)) {
    it(`is told in one line: ${what}`, async () => {
      const detail = await opened(name, bytes)
      expect(detail).toMatch(oneLine)
      expect(detail).toMatch(reason)
    })
  }

  it("is not there, or a folder", async () => {
    const open = (model_path: string) =>
      Effect.runPromise(
        Effect.flip(openModel({ model_path, classes_path: "/dev/null", cache_dir })),
      )
    expect((await open("/nowhere/a.h5")).detail).toMatch(oneLine)
  })
})
