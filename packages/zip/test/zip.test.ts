/** Forged and damaged archives, and archives that unpack to gigabytes: none exceeds the limits. */
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, describe, expect, it } from "vitest"
import { isZipFailure, openZip } from "../zip.ts"
import { archiveOf, type Part } from "./archive.ts"

const folder = mkdtempSync(join(tmpdir(), "almanac-zip-"))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

let places = 0
const newPlace = () => join(folder, `${places++}`)

const hello: Part = { name: "hello.txt", content: Buffer.from("hello ".repeat(100)) }

const reading = async (source: string | Buffer, name: string, bytes_max = 2 ** 20) => {
  const zip = await openZip(source, 10)
  return zip.read(name, bytes_max).finally(zip.close)
}

const failing = (source: string | Buffer, name = hello.name, bytes_max = 2 ** 20) =>
  reading(source, name, bytes_max).then(
    () => "read",
    (error: unknown) => (isZipFailure(error) ? error.reason : error),
  )

describe("an archive", () => {
  const forms: Readonly<Record<string, Buffer>> = {
    "stored entries": archiveOf([{ ...hello, method: 0 }]),
    "deflated entries": archiveOf([hello]),
    "sizes after the data": archiveOf([{ ...hello, flags: 8 }]),
    "sizes of 64 bits": archiveOf([hello], true),
    "a comment": Buffer.concat([
      archiveOf([hello]).subarray(0, -2),
      Buffer.from([3, 0]),
      Buffer.from("abc"),
    ]),
  }
  for (const [what, bytes] of Object.entries(forms)) {
    it(`with ${what} is read from a file and from memory`, async () => {
      const path = newPlace()
      writeFileSync(path, bytes)
      for (const source of [path, bytes]) {
        expect(await reading(source, hello.name)).toEqual(hello.content)
        expect(await reading(source, "another")).toBeUndefined()
      }
    })
  }

  it("yields an empty entry, and the last of two with one name", async () => {
    const empty = { name: "empty", content: Buffer.alloc(0) }
    const later = { ...hello, content: Buffer.from("later") }
    const bytes = archiveOf([hello, { ...empty, method: 0 }, later])
    expect(await reading(bytes, "empty", 0)).toEqual(empty.content)
    expect(String(await reading(bytes, hello.name))).toBe("later")
  })

  it("is extracted to a new private file, and never over another", async () => {
    const zip = await openZip(archiveOf([hello]), 10)
    const path = newPlace()
    expect(await zip.extract("another", path, 1000)).toBe(false)
    expect(await zip.extract(hello.name, path, 1000)).toBe(true)
    expect(readFileSync(path)).toEqual(hello.content)
    expect(statSync(path).mode & 0o777).toBe(0o600)
    await expect(zip.extract(hello.name, path, 1000)).rejects.toThrow("EEXIST")
  })

  it("that does not exist fails with the file system's code", async () => {
    await expect(openZip(newPlace(), 10)).rejects.toThrow("ENOENT")
  })
})

describe("a limit", () => {
  it("applies to the declared size of an entry", async () => {
    const bytes = archiveOf([hello])
    expect(await reading(bytes, hello.name, 600)).toHaveLength(600)
    expect(await failing(bytes, hello.name, 599)).toBe("too large")
    await expect(reading(bytes, hello.name, 599)).rejects.toThrow("hello.txt is larger than 0 MB")
  })

  it("stops a bomb that declares few bytes, before it is unpacked", async () => {
    const bomb = archiveOf([{ name: "bomb", content: Buffer.alloc(32 * 2 ** 20), bytes: 10 }])
    expect(bomb.length).toBeLessThan(100_000)
    const zip = await openZip(bomb, 10)
    const before = process.memoryUsage().arrayBuffers
    await expect(zip.read("bomb", 2 ** 30)).rejects.toThrow("The ZIP archive is damaged.")
    await expect(zip.extract("bomb", newPlace(), 2 ** 30)).rejects.toThrow(
      "The ZIP archive is damaged.",
    )
    expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(8 * 2 ** 20)
  })

  it("applies to each of several overlapping entries", async () => {
    const bytes = archiveOf([hello, { ...hello, name: "again", over: 0 }])
    expect(await reading(bytes, "again", 600)).toEqual(hello.content)
    expect(await failing(bytes, "again", 599)).toBe("too large")
  })

  it("applies to the number of entries and the size of the directory", async () => {
    const many = Array.from({ length: 11 }, (_, n) => ({ ...hello, name: `${n}` }))
    expect(await failing(archiveOf(many.slice(1)), "1")).toBe("read")
    expect(await failing(archiveOf(many), "1")).toBe("damaged")
    const long = Array.from({ length: 300 }, (_, n) => ({ ...hello, name: `${n}`.padEnd(65_000) }))
    await expect(openZip(archiveOf(long), 1000)).rejects.toThrow("The ZIP archive is damaged.")
  })

  it("lets the event loop run while a large entry is unpacked", async () => {
    const large = { name: "large", content: Buffer.alloc(32 * 2 ** 20) }
    const zip = await openZip(archiveOf([large]), 10)
    let turns = 0
    let is_done = false
    const turn = () => {
      turns++
      if (!is_done) setImmediate(turn)
    }
    turn()
    await zip.read("large", 2 ** 30)
    is_done = true
    expect(turns).toBeGreaterThan(100)
  })
})

describe("a damaged archive", () => {
  it("that is truncated anywhere yields nothing", async () => {
    for (const bytes of [archiveOf([hello, hello]), archiveOf([hello], true)]) {
      for (let length = 0; length < bytes.length; length++) {
        expect(await failing(bytes.subarray(0, length))).toBe("damaged")
      }
    }
  })

  it("with a changed byte in its data yields nothing", async () => {
    for (const method of [0, 8]) {
      const bytes = archiveOf([{ ...hello, method }])
      const from = bytes.indexOf("hello.txt") + 9
      for (let place = from; place < from + 10; place++) {
        const changed = Buffer.from(bytes)
        changed.writeUInt8(bytes.readUInt8(place) ^ 1, place)
        expect(await failing(changed)).toBe("damaged")
      }
    }
  })

  const parts: Readonly<Record<string, Part>> = {
    "another checksum": { ...hello, sum: 1 },
    "more bytes than it declares": { ...hello, bytes: 599 },
    "fewer bytes than it declares": { ...hello, bytes: 601 },
    "other sizes stored and unpacked": { ...hello, method: 0, bytes: 10 },
    "an unknown compression": { ...hello, method: 12 },
    "an encrypted entry": { ...hello, flags: 1 },
    "strong encryption": { ...hello, flags: 0x41 },
    "a name that leaves the folder": { ...hello, name: "../../hello.txt" },
    "an absolute name": { ...hello, name: "/etc/hello.txt" },
  }
  for (const [what, part] of Object.entries(parts)) {
    it(`with ${what} is refused`, async () => {
      expect(await failing(archiveOf([part]), part.name)).toBe("damaged")
    })
  }

  it("with an entry beyond its end is refused", async () => {
    const bytes = archiveOf([hello])
    bytes.writeUInt32LE(bytes.length, bytes.lastIndexOf("PK\u0001\u0002") + 42)
    expect(await failing(bytes)).toBe("damaged")
  })
})
