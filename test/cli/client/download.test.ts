/** Downloads of blobs to files: complete and verified, resumed, or not created at all. */
import {
  appendFileSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Blake3Hasher } from "@napi-rs/blake-hash"
import { afterEach, beforeEach } from "vitest"
import { download } from "#cli/client/blob-storage/download.ts"
import { hexOf } from "#cli/client/blob-storage/id.ts"
import { upload } from "#cli/client/blob-storage/upload.ts"
import { decodedLabels } from "#gateway/blob-storage/direct/request.ts"
import { endingOf, json, type Script, scripted, sessionWith } from "./scripted.ts"

const bytes = Buffer.from(Array.from({ length: 100_000 }, (_, i) => (i * 31 + (i >> 8)) % 256))
const hash = (content: Buffer) => new Blake3Hasher().update(content).digestBuffer()
const checksum = hash(bytes).toString("base64")
const id = hash(bytes).subarray(0, 16).toString("hex")
const cut_at = 60_000

let folder: string
let path: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "almanac-download-"))
  path = join(folder, "blob.bin")
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

/** A store of one blob that responds to stat, and sends bytes with `send`. */
const store =
  (send: Script): Script =>
  (heard, answer, nth) => {
    if (!heard.path.includes("/stat")) return send(heard, answer, nth)
    json(answer, 200, { exists: true, meta: { size: bytes.length, checksum } })
  }

const rangeFrom = (range: string | undefined) => Number(/bytes=(\d+)-/.exec(range ?? "")?.[1] ?? 0)

const whole: Script = ({ headers }, answer) => {
  const from = rangeFrom(headers.range)
  answer.writeHead(from > 0 ? 206 : 200).end(bytes.subarray(from))
}
/** The first download breaks off in the middle. */
const broken: Script = (heard, answer, nth) => {
  if (nth > 2) return whole(heard, answer, nth)
  answer.writeHead(200, { "content-length": String(bytes.length) })
  answer.write(bytes.subarray(0, cut_at), () => answer.destroy())
}

const at = async (script: Script, work: (url: string, ranges: () => unknown) => Promise<void>) => {
  const server = await scripted(script)
  const ranges = () => server.heard.flatMap(({ headers: { range } }) => range ?? [])
  try {
    await work(server.url, ranges)
  } finally {
    await server.close()
  }
}

describe("a download", () => {
  it("is there whole, and leaves nothing else", () =>
    at(store(whole), async (url) => {
      await download(sessionWith(url).session, id, path, false)
      assert.isTrue(readFileSync(path).equals(bytes))
      assert.deepEqual(readdirSync(folder), ["blob.bin"])
    }))

  it("goes on where the connection broke", () =>
    at(store(broken), async (url, ranges) => {
      const { session } = sessionWith(url)
      const { ending, message } = await endingOf(download(session, id, path, false))
      assert.equal(ending, "unreachable")
      assert.match(message, /which resumes the download/)
      assert.deepEqual(readdirSync(folder), [`blob.bin.${id.slice(0, 8)}.part`])
      const { resumed_at } = await download(session, id, path, false)
      assert.isAbove(resumed_at, 0)
      assert.deepEqual(ranges(), [`bytes=${resumed_at}-`])
      assert.isTrue(readFileSync(path).equals(bytes))
      assert.deepEqual(readdirSync(folder), ["blob.bin"])
    }))

  it("keeps nothing of bytes that are others", () => {
    const damaged = Buffer.from(bytes)
    damaged[50_000] = (damaged[50_000] ?? 0) ^ 1
    return at(
      store((_, answer) => answer.writeHead(200).end(damaged)),
      async (url) => {
        const { ending } = await endingOf(download(sessionWith(url).session, id, path, false))
        assert.equal(ending, "damaged")
        assert.deepEqual(readdirSync(folder), [])
      },
    )
  })

  it("does not trust what an earlier try left", () =>
    at(store(whole), async (url) => {
      writeFileSync(`${path}.${id.slice(0, 8)}.part`, Buffer.alloc(10_000, 1))
      const { session } = sessionWith(url)
      assert.equal((await endingOf(download(session, id, path, false))).ending, "damaged")
      assert.deepEqual(readdirSync(folder), [])
      await download(session, id, path, false)
      assert.isTrue(readFileSync(path).equals(bytes))
    }))

  it("starts again if an earlier try received no byte", () =>
    at(store(whole), async (url) => {
      writeFileSync(`${path}.${id.slice(0, 8)}.part`, "")
      await download(sessionWith(url).session, id, path, false)
      assert.isTrue(readFileSync(path).equals(bytes))
    }))

  it("into a folder is rejected, with and without the option to replace", () =>
    at(store(whole), async (url) => {
      const { ending, message } = await endingOf(
        download(sessionWith(url).session, id, folder, true),
      )
      assert.equal(ending, "usage")
      assert.match(message, /is a folder/)
    }))

  it("asks for no byte of a part that is whole already", () =>
    at(store(whole), async (url) => {
      writeFileSync(`${path}.${id.slice(0, 8)}.part`, bytes)
      const { session } = sessionWith(url)
      assert.equal((await download(session, id, path, false)).resumed_at, bytes.length)
      assert.deepEqual(readdirSync(folder), ["blob.bin"])
    }))

  it("replaces a file only with the option to replace", () =>
    at(store(whole), async (url) => {
      writeFileSync(path, "mine")
      const { session } = sessionWith(url)
      assert.equal((await endingOf(download(session, id, path, false))).ending, "usage")
      assert.equal(readFileSync(path, "utf8"), "mine")
      await download(session, id, path, true)
      assert.isTrue(readFileSync(path).equals(bytes))
    }))

  it("leaves its part when it is interrupted", () =>
    at(
      store((_, answer) => {
        answer.writeHead(200, { "content-length": String(bytes.length) })
        answer.write(bytes.subarray(0, cut_at))
      }),
      async (url) => {
        const { session, stop } = sessionWith(url)
        const work = endingOf(download(session, id, path, false))
        const part = `blob.bin.${id.slice(0, 8)}.part`
        while (readdirSync(folder).every((name) => readFileSync(join(folder, name)).length === 0)) {
          await new Promise(setImmediate)
        }
        stop()
        assert.equal((await work).ending, "interrupted")
        assert.deepEqual(readdirSync(folder), [part])
      },
    ))
})

describe("two downloads at once", () => {
  it("of the same blob to the same place leave the blob, in either order", () =>
    at(
      store(({ headers }, answer) => {
        const from = rangeFrom(headers.range)
        answer.writeHead(from > 0 ? 206 : 200).write(bytes.subarray(from, cut_at))
        // The first response continues when the second has started from the middle.
        if (from > 0 || waiting.length > 0) {
          for (const go_on of [...waiting, () => answer.end(bytes.subarray(cut_at))]) go_on()
        } else waiting.push(() => answer.end(bytes.subarray(cut_at)))
      }),
      async (url) => {
        const one = () => endingOf(download(sessionWith(url).session, id, path, true))
        const first = one()
        while (waiting.length === 0 || !partLength()) await new Promise(setImmediate)
        const endings = [await one(), await first].map(({ ending }) => ending)
        assert.include(endings, "ok")
        assert.isTrue(readFileSync(path).equals(bytes))
        assert.deepEqual(readdirSync(folder), ["blob.bin"])
      },
    ))
  const waiting: Array<() => void> = []
  const partLength = () =>
    readdirSync(folder).some((name) => readFileSync(join(folder, name)).length > 0)
})

describe("an upload", () => {
  const answered = (content: Buffer): Script => {
    const sum = hash(content)
    const stored = { id: { id: sum.subarray(0, 16).toString("base64") }, size: content.length }
    return ({ body }, answer, nth) =>
      body.length === 0 || nth === 0
        ? json(answer, 400, {})
        : json(answer, 200, { ...stored, meta: { checksum: sum.toString("base64") } })
  }

  it("is the file's bytes, with labels and policy", async () => {
    writeFileSync(path, bytes)
    const server = await scripted(answered(bytes))
    const { session } = sessionWith(server.url)
    const stored = await upload(session, { file: path, policy: "EC42", labels: { a: "b" } })
    const [first] = server.heard
    assert(first !== undefined)
    const { path: requested_path, headers, body } = first
    assert.equal(requested_path, "/v1/blobs/stream?policy=REPLICATION_POLICY_EC42")
    assert.equal(headers["x-label-a"], "b")
    assert.equal(headers["content-length"], String(bytes.length))
    assert.isTrue(body.equals(bytes))
    assert.include(JSON.stringify(stored), id)
    await server.close()
  })

  it("is sent again from its beginning after 503", async () => {
    writeFileSync(path, bytes)
    const good = answered(bytes)
    const server = await scripted((heard, answer, nth) =>
      nth === 1 ? json(answer, 503, {}) : good(heard, answer, nth),
    )
    await upload(sessionWith(server.url).session, { file: path, policy: undefined, labels: {} })
    assert.equal(server.heard.length, 2)
    assert.isTrue(server.heard.every(({ body }) => body.equals(bytes)))
    await server.close()
  })

  it("has its labels exactly, including those that a header cannot carry", async () => {
    writeFileSync(path, bytes)
    const server = await scripted(answered(bytes))
    const labels = { Stage: "100%25 ü→", "a b": " x " }
    await upload(sessionWith(server.url).session, { file: path, policy: undefined, labels })
    assert.deepEqual(decodedLabels(server.heard[0]?.headers as Record<string, string>), labels)
    await server.close()
  })

  it("says that labels stay which bytes have had before", async () => {
    writeFileSync(path, bytes)
    const meta = { checksum: hash(bytes).toString("base64"), labels: { a: "1", b: "2" } }
    const server = await scripted((_, answer) => json(answer, 200, { id: { id: "" }, meta }))
    for (const [labels, err] of [
      [{ a: "1" }, ""],
      [{ a: "2" }, "blob.bin: the blob already exists; its labels are unchanged.\n"],
    ] as const) {
      const { session, written } = sessionWith(server.url)
      await upload(session, { file: path, policy: undefined, labels })
      assert.equal(written.err, err)
    }
    await server.close()
  })

  it("reports that the file cannot be read, not that the server is offline", async () => {
    writeFileSync(path, bytes)
    const server = await scripted((_, answer) => {
      rmSync(path)
      json(answer, 503, {})
    })
    const options = { file: path, policy: undefined, labels: {} }
    const { ending, message } = await endingOf(upload(sessionWith(server.url).session, options))
    assert.equal(ending, "usage")
    assert.match(message, /blob\.bin cannot be read: ENOENT/)
    await server.close()
  })

  it("of a file that has shrunk since it was measured ends at once", async () => {
    writeFileSync(path, bytes)
    const server = await scripted((_, answer) => {
      truncateSync(path, 10)
      json(answer, 503, {})
    })
    const options = { file: path, policy: undefined, labels: {} }
    const { ending, message } = await endingOf(upload(sessionWith(server.url).session, options))
    assert.equal(ending, "usage")
    assert.match(message, /shrank/)
    await server.close()
  })

  it("of a file that grows is as long as it was when it began", async () => {
    writeFileSync(path, bytes)
    const good = answered(bytes)
    const server = await scripted((heard, answer, nth) => {
      if (nth > 1) return good(heard, answer, nth)
      appendFileSync(path, "more")
      json(answer, 503, {})
    })
    const options = { file: path, policy: undefined, labels: {} }
    await upload(sessionWith(server.url).session, options)
    assert.isTrue(server.heard[1]?.body.equals(bytes))
    await server.close()
  })

  it("of a file that has bytes and no size is sent as it comes", async () => {
    const file = "/proc/self/status"
    const server = await scripted((heard, answer) =>
      json(answer, heard.headers["transfer-encoding"] === "chunked" ? 409 : 500, {}),
    )
    const options = { file, policy: undefined, labels: {} }
    const { ending } = await endingOf(upload(sessionWith(server.url).session, options))
    assert.equal(ending, "conflict")
    await server.close()
  })

  it("whose answer is cut off ends as unreachable", async () => {
    writeFileSync(path, bytes)
    const server = await scripted((_, answer) => {
      answer.writeHead(200, { "content-length": "100" }).write("{", () => answer.destroy())
    })
    const options = { file: path, policy: undefined, labels: {} }
    const { ending } = await endingOf(upload(sessionWith(server.url).session, options))
    assert.equal(ending, "unreachable")
    await server.close()
  })

  it("ends as damaged where the server has stored other bytes", async () => {
    writeFileSync(path, bytes)
    const server = await scripted(answered(Buffer.from("others")))
    const work = upload(sessionWith(server.url).session, {
      file: path,
      policy: undefined,
      labels: {},
    })
    assert.equal((await endingOf(work)).ending, "damaged")
    await server.close()
  })
})

describe("an id", () => {
  it("is hex, for each form of the response", () => {
    const base64 = Buffer.from(id, "hex").toString("base64")
    assert.equal(hexOf(base64), id)
    assert.equal(hexOf({ id: base64 }), id)
  })
})
