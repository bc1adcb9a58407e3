import assert from "node:assert/strict"
import { mkdtempSync, readFileSync, rmSync, truncateSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { blake3 } from "@napi-rs/blake-hash"
import { afterEach, beforeEach, describe, it } from "vitest"
import { faultOf } from "#actors/blob-storage/blobs/fault.ts"
import { hasPlain, openPlain } from "#adapters/blob-storage/plain/plain.ts"
import { noise } from "../contract/blob-store-bytes.ts"
import { fileWith, plainStore } from "./plain-store.ts"

const kib = 1024
const size = 1000 * kib

let dir = ""
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), "almanac-plain-"))
})
afterEach(() => rmSync(dir, { recursive: true, force: true }))

/** A store of this one blob, its file changed by `damage`; what reading it comes to. */
const readDamaged = async (damage: (path: string) => void) => {
  const store = plainStore(dir)
  const id = store.put(noise(1, size))
  store.close()
  damage(store.fileOf(id))
  const plain = openPlain(dir)
  const read: Array<Uint8Array> = []
  try {
    const [blob = assert.fail()] = plain.blobs("", 1)
    for await (const window of plain.read(blob)) read.push(window)
    return Buffer.concat(read)
  } catch (cause) {
    const got = Buffer.concat(read)
    assert(got.equals(noise(1, size).subarray(0, got.length)), "what was read is right")
    const fault = faultOf(cause)
    return "detail" in fault ? `${fault._tag}: ${fault.detail}` : fault._tag
  } finally {
    plain.close()
  }
}

const flip = (position: number) => (path: string) => {
  const bytes = readFileSync(path)
  bytes[position] = (bytes[position] ?? 0) ^ 16
  writeFileSync(path, bytes)
}

const checksumOf = (bytes: Uint8Array) => blake3(bytes).toString("base64")

describe("a plain store's file", () => {
  it("is read as it was put", async () => {
    const bytes = await readDamaged(() => undefined)
    assert(Buffer.from(noise(1, size)).equals(Buffer.from(bytes)))
  })

  const damages: ReadonlyArray<readonly [string, RegExp, (path: string) => void]> = [
    ["its first byte", /Bytes from 0 do not/, flip(0)],
    ["its last byte", /Bytes from 983040 do not/, flip(size - 1)],
    ["its table", /Bytes from 131072 do not/, flip(size + 9)],
    ["its footer", /footer is damaged/, flip(size + 16 * 4 + 30)],
    ["its length", /has 1024128 bytes/, (path) => truncateSync(path, size + 128)],
    ["all of it", /file is gone/, (path) => rmSync(path)],
    [
      "another blob's file in its place",
      /footer is that of another blob/,
      (path) => writeFileSync(path, fileWith(noise(2, size), checksumOf(noise(2, size)))),
    ],
    [
      "bytes with checksums that were made to fit",
      /do not match the blob's checksum/,
      (path) => {
        const bytes = noise(1, size)
        const checksum = checksumOf(bytes)
        bytes[size - 5] = (bytes[size - 5] ?? 0) ^ 1
        writeFileSync(path, fileWith(bytes, checksum))
      },
    ],
  ]
  for (const [what, detail, damage] of damages) {
    it(`is corrupt by ${what}`, async () => {
      const told = String(await readDamaged(damage))
      assert.match(told, /^BlobCorrupt: /)
      assert.match(told, detail)
    })
  }
})

describe("a plain store", () => {
  it("is opened by one process at a time, and only where there is one", () => {
    assert.equal(hasPlain(dir), false)
    assert.throws(() => openPlain(dir))
    plainStore(dir).close()
    assert.equal(hasPlain(dir), true)
    const plain = openPlain(dir)
    assert.throws(() => openPlain(dir), /locked/)
    plain.close()
    openPlain(dir).close()
  })

  it("of another version is refused", () => {
    const store = plainStore(dir)
    store.setVersion(2)
    store.close()
    assert.throws(() => openPlain(dir), /has version 2, this program knows 1/)
  })

  it("has one more fact for what is set aside, later than all others", () => {
    const store = plainStore(dir)
    const id = store.put(noise(1, 10))
    store.put(noise(2, 10))
    store.acknowledge(2)
    store.close()
    const plain = openPlain(dir)
    const blob = plain.blobs("", 10).find((one) => one.id === id) ?? assert.fail()
    plain.setAside(blob, new Error("bad"), 1n)
    assert.equal(plain.has(id), false)
    assert.equal(plain.cursor(), 3)
    const [fact, ...rest] = plain.scan(0, 10)
    assert.deepEqual(rest, [])
    assert.equal(`${fact?.cursor} ${fact?.kind} ${fact?.id}`, `3 quarantined ${id}`)
    assert(plain.blobs("", 10).every(({ created_at }) => created_at < (fact?.at ?? 0n)))
    assert.deepEqual(plain.quarantined(0, 10), [{ id, at: fact?.at, detail: "bad" }])
    assert.deepEqual(plain.totals(), { blobs: 1, bytes: 10, tombstones: 0, quarantined: 1 })
    plain.acknowledge(3)
    assert.deepEqual(plain.scan(0, 10), [])
    assert.equal(plain.cursor(), 3)
    plain.close()
  })
})
