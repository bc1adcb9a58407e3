/** Damaged model files: one line each, never a crash. */
import { mkdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { crc32 } from "node:zlib"
import { Effect, Result } from "effect"
import { describe, expect, it } from "vitest"
import { openZip } from "../keras/zip.ts"
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

describe("a zip archive that is cut off anywhere", () => {
  it("is told by what it lacks, and nothing of it is given out", async () => {
    const whole = fixtureBytes("deflated.keras")
    const path = newPlace("cut.keras")
    const details = new Set<string>()
    for (let bytes = 0; bytes < whole.length; bytes += 23) {
      writeFileSync(path, whole.subarray(0, bytes))
      const reading = async () => {
        const zip = openZip(path)
        return zip.read("config.json", 2 ** 20).finally(zip.close)
      }
      details.add(
        await reading().then(
          () => "read",
          ({ detail }) => String(detail),
        ),
      )
    }
    expect([...details]).toEqual(["The .keras file is damaged: it is no whole zip archive."])
  })

  for (const name of ["nested.keras", "deflated.keras"]) {
    it(`with one letter of its configuration changed is damaged: ${name}`, async () => {
      const bytes = fixtureBytes(name)
      const place = bytes.indexOf("config.json") + 200
      bytes.writeUInt8(bytes.readUInt8(place) ^ 1, place)
      const path = newPlace("changed.keras")
      writeFileSync(path, bytes)
      const zip = openZip(path)
      const detail = await zip.read("config.json", 2 ** 20).catch((error) => String(error.detail))
      expect(detail).toContain("The .keras file is damaged")
      zip.close()
    })
  }

  it("may say its sizes in 64 bits", async () => {
    const path = newPlace("long.keras")
    writeFileSync(path, longZipOf("config.json", "{}"))
    const zip = openZip(path)
    expect(String(await zip.read("config.json", 100))).toBe("{}")
    zip.close()
  })

  it("unpacks to no more than it may", async () => {
    const path = newPlace("large.keras")
    writeFileSync(path, fixtureBytes("deflated.keras"))
    const zip = openZip(path)
    const detail = await zip.read("config.json", 100).catch((error) => String(error.detail))
    expect(detail).toContain("config.json has more than")
    zip.close()
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
    "another zip": ["a.keras", zipOf("hello.txt"), /no config\.json/],
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

/** A zip of one stored entry, its directory and sizes as in one of more than 4 GB. */
function longZipOf(name: string, text: string) {
  const elsewhere = 0xffffffff
  const local = Buffer.alloc(30)
  local.writeUInt32LE(0x04034b50, 0)
  local.writeUInt16LE(name.length, 26)
  const central = Buffer.alloc(46)
  central.writeUInt32LE(0x02014b50, 0)
  central.writeUInt32LE(crc32(text), 16)
  for (const place of [20, 24, 42]) central.writeUInt32LE(elsewhere, place)
  central.writeUInt16LE(name.length, 28)
  central.writeUInt16LE(4 + 4 + 24, 30)
  const extra = Buffer.alloc(8 + 24)
  // An extra field of another kind stands before it.
  extra.writeUInt16LE(0x5455, 0)
  extra.writeUInt16LE(1, 4)
  extra.writeUInt16LE(24, 6)
  extra.writeBigUInt64LE(BigInt(text.length), 8)
  extra.writeBigUInt64LE(BigInt(text.length), 16)
  const first = local.length + name.length + text.length
  const directory_bytes = central.length + name.length + extra.length
  const end64 = Buffer.alloc(56)
  end64.writeUInt32LE(0x06064b50, 0)
  end64.writeBigUInt64LE(BigInt(directory_bytes), 40)
  end64.writeBigUInt64LE(BigInt(first), 48)
  const locator = Buffer.alloc(20)
  locator.writeUInt32LE(0x07064b50, 0)
  locator.writeBigUInt64LE(BigInt(first + directory_bytes), 8)
  const end = Buffer.alloc(22)
  end.writeUInt32LE(0x06054b50, 0)
  for (const place of [12, 16]) end.writeUInt32LE(elsewhere, place)
  const parts = [local, name, text, central, name, extra, end64, locator, end]
  return Buffer.concat(parts.map((part) => (typeof part === "string" ? Buffer.from(part) : part)))
}

/** A zip of one empty entry. */
function zipOf(name: string) {
  const local = Buffer.alloc(30)
  local.writeUInt32LE(0x04034b50, 0)
  local.writeUInt16LE(name.length, 26)
  const central = Buffer.alloc(46)
  central.writeUInt32LE(0x02014b50, 0)
  central.writeUInt16LE(name.length, 28)
  const end = Buffer.alloc(22)
  end.writeUInt32LE(0x06054b50, 0)
  end.writeUInt16LE(1, 8)
  end.writeUInt16LE(1, 10)
  end.writeUInt32LE(46 + name.length, 12)
  end.writeUInt32LE(30 + name.length, 16)
  return Buffer.concat([local, Buffer.from(name), central, Buffer.from(name), end])
}
