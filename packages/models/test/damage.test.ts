/** Damaged model files cause an error of one line, never a crash. */
import { mkdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { Effect, Result } from "effect"
import { describe, expect, it } from "vitest"
import { archiveOf } from "../../zip/test/archive.ts"
import { readKerasZip } from "../keras/archive.ts"
import { openModel } from "../open-model.ts"
import { fixtureBytes, newPath } from "./run-network.ts"

const cache_dir = newPath("cache")

const open = async (name: string, bytes: Uint8Array, classes = 4) => {
  const folder = newPath("damaged")
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

/** Corrupts a hundred bytes after the header, chosen by a seed. */
const corrupt = (bytes: Buffer, seed: number) => {
  const damaged = Buffer.from(bytes)
  let state = seed
  for (let n = 0; n < 100; n++) {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    const place = 16 + (state % (damaged.length - 16))
    damaged[place] = (damaged[place] ?? 0) ^ (1 + (state >>> 24))
  }
  return damaged
}

describe("a truncated model file", () => {
  for (const name of ["small.h5", "nested.keras"]) {
    const bytes = fixtureBytes(name)
    for (const share of [0.1, 0.999]) {
      it(`${name} at ${share * 100} per cent is rejected in one line`, async () => {
        const cut = bytes.subarray(0, Math.floor(bytes.length * share))
        const detail = await open(name, cut)
        expect(detail).toMatch(oneLine)
        expect(detail).toContain("file is damaged")
      })
    }
  }
})

describe("a zip archive", () => {
  const readError = async (bytes: Uint8Array) => {
    const path = newPath("failing.keras")
    writeFileSync(path, bytes)
    const folder = newPath("folder")
    mkdirSync(folder)
    return readKerasZip(path, folder).then(
      () => "read",
      ({ detail }) => String(detail),
    )
  }
  const damaged = "The .keras file is damaged: it is not a complete ZIP archive."

  it("that is truncated anywhere is damaged", async () => {
    const whole = fixtureBytes("deflated.keras")
    const details = new Set<string>()
    for (let bytes = 0; bytes < whole.length; bytes += 23) {
      details.add(await readError(whole.subarray(0, bytes)))
    }
    expect([...details]).toEqual([damaged])
  })

  for (const name of ["nested.keras", "deflated.keras"]) {
    it(`with one letter of its configuration changed is damaged: ${name}`, async () => {
      const bytes = fixtureBytes(name)
      const place = bytes.indexOf("config.json") + 200
      bytes.writeUInt8(bytes.readUInt8(place) ^ 1, place)
      expect(await readError(bytes)).toBe(damaged)
    })
  }

  it("is not extracted beyond its limits", async () => {
    const content = Buffer.from("{}")
    const config = { name: "config.json", content, bytes: 65 * 2 ** 20 }
    expect(await readError(archiveOf([config]))).toBe("Its config.json is larger than 64 MB.")
    const weights = { name: "model.weights.h5", content, bytes: 9 * 2 ** 30 }
    const model = JSON.stringify({
      class_name: "Sequential",
      config: { layers: [{ class_name: "InputLayer", config: { name: "i" } }] },
    })
    const parts = [{ name: "config.json", content: Buffer.from(model) }, weights]
    expect(await readError(archiveOf(parts, true))).toBe(
      "Its model.weights.h5 is larger than 8192 MB.",
    )
  })
})

describe("a model file with a hundred corrupt bytes", () => {
  for (const seed of [1, 2]) {
    it(`is rejected, or opened if only weights are corrupt: .h5, seed ${seed}`, async () => {
      expect(await open("small.h5", corrupt(fixtureBytes("small.h5"), seed))).toMatch(
        /^opened$|^[^\n\p{Cc}]{10,300}$/u,
      )
    })
    it(`is rejected in one line: .keras, seed ${seed}`, async () => {
      const detail = await open("nested.keras", corrupt(fixtureBytes("deflated.keras"), seed))
      expect(detail).toMatch(oneLine)
    })
  }
})

describe("a file that is not a model", () => {
  const others: Readonly<Record<string, readonly [string, Uint8Array, RegExp]>> = {
    "an empty one": ["a.h5", Buffer.alloc(0), /is empty/],
    "a picture": [
      "a.h5",
      Buffer.from("\x89PNG\r\n\x1a\n and more", "latin1"),
      /does not start like/,
    ],
    "a text": ["a.txt", Buffer.from("hello, world, hello"), /is not a Keras \.h5 or \.keras/],
    "one of PyTorch": ["a.pth", Buffer.from("PK\x03\x04 and more"), /PyTorch.*torch.onnx/],
    "a .tflite": ["a.tflite", Buffer.from("\x1c\x00\x00\x00TFL3 and more", "latin1"), /tflite/],
    "another zip": [
      "a.keras",
      archiveOf([{ name: "hello.txt", content: Buffer.alloc(0) }]),
      /no config\.json/,
    ],
    "weights only": [
      "a.h5",
      fixtureBytes("only.weights.h5"),
      /contains weights but no model.*model\.save/,
    ],
    "an .onnx of nothing": ["a.onnx", Buffer.alloc(100, 1), /onnx/],
    "a JSON of nothing": ["model.json", Buffer.from('{"a":1}'), /layers model of tfjs/],
    "half a JSON": ["model.json", Buffer.from('{"format":"layers-model","modelTo'), /JSON/],
  }
  for (const [what, [name, bytes, reason]] of Object.entries(others)) {
    it(`is rejected in one line: ${what}`, async () => {
      const detail = await open(name, bytes)
      expect(detail).toMatch(oneLine)
      expect(detail).toMatch(reason)
    })
  }

  it("does not exist", async () => {
    const open = (model_path: string) =>
      Effect.runPromise(
        Effect.flip(openModel({ model_path, classes_path: "/dev/null", cache_dir })),
      )
    expect((await open("/nowhere/a.h5")).detail).toMatch(oneLine)
  })
})
