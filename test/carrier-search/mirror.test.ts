/** The mirror as a registry: its rows, its files that are replaced, and its thread. */
import {
  copyFileSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  renameSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { pathToFileURL } from "node:url"
import Sqlite from "better-sqlite3"
import { Context, Effect, Exit, Layer, Scope, Stream } from "effect"
import fc from "fast-check"
import { afterEach, beforeEach, describe, expect, it } from "vitest"
import { type Piece, Registry, SearchFailed } from "#actors/carrier-search/registry.ts"
import { hasMirror, mirrorFile, registryMirror } from "#adapters/carrier-search/mirror.ts"
import type { Range } from "#schemas/carrier-search/carrier.ts"
import { type Format, formats, rowOf } from "#schemas/carrier-search/format.ts"
import { textOf } from "../contract/registry.ts"
import { settingsWith } from "../world/http.ts"
import { importTexts, legacyFile, motusOf, quoted } from "./mirror-given.ts"

const filler = { mc: 99_000_000, dot: 99_000_000, name: "-", active: false, carrier_only: true }

let folder: string
let path: string
let scope: Scope.Closeable
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "almanac-mirror-"))
  path = join(folder, "carriers.sqlite")
  scope = Effect.runSync(Scope.make())
})
afterEach(async () => {
  await Effect.runPromise(Scope.close(scope, Exit.void))
  rmSync(folder, { recursive: true, force: true })
})

type Options = Omit<Parameters<typeof registryMirror>[0], "path">

const start = async (options: Options = {}) => {
  const built = Layer.build(registryMirror({ path, ...options }))
  const { search, source } = Context.get(
    await Effect.runPromise(Scope.provide(built, scope)),
    Registry,
  )
  const pieces = (range: Range, format: Format = "ndjson"): Promise<ReadonlyArray<Piece>> =>
    Effect.runPromise(Stream.runCollect(search(range, format)))
  const failure = (range: Range) =>
    Effect.runPromise(Effect.flip(Stream.runDrain(search(range, "json"))))
  /** Pulls the pieces one at a time, as a consumer does. */
  const slowly = (range: Range) => Stream.toAsyncIterable(search(range, "ndjson"))
  return { search, pieces, failure, slowly, source: () => Effect.runPromise(source) }
}

const range = { start: 1, end: 100 }
const carrierRow = (mc: number, dot: number, name: string) => `MC${mc},${dot},A,N,N,${quoted(name)}`

/** Imports carriers with this name for each number up to `many`. */
const fill = (name: string, many = 3, dots_each = 1) =>
  importTexts(path, {
    "l.csv": legacyFile(
      ...Array.from({ length: many * dots_each }, (_, n) =>
        carrierRow(1 + Math.floor(n / dots_each), n + 1, `${name} ${n}`),
      ),
    ),
  })

const placeOf = (fd: string) => {
  try {
    return readlinkSync(`/proc/self/fd/${fd}`)
  } catch {
    return ""
  }
}

const text = async (pieces: Promise<ReadonlyArray<Piece>>) => textOf(await pieces)

/** Characters that JSON or CSV may have to escape, and lookalikes that they must not. */
const odd_letters = [
  ...Array.from({ length: 0x20 }, (_, code) => String.fromCodePoint(code)),
  ...Array.from("\"\\/',;=+@-\u007f\u0080\u009f\u2028\u2029\ufeff"),
]

describe("the rows of a mirror", () => {
  it("are none, time and again, where no number has a carrier", async () => {
    await fill("NAME")
    const { pieces } = await start()
    const gap = { start: 1000, end: 2000 }
    for (const format of [...formats, ...formats]) {
      expect(await text(pieces(gap, format))).toBe("")
    }
    expect((await pieces(range)).at(-1)).toMatchObject({ done: 100, found: 3 })
  })

  it("are exactly what the format says, for any name", async () => {
    const letters = fc.oneof(
      fc.string({ unit: "binary", maxLength: 20 }),
      fc.string({ unit: fc.constantFrom(...odd_letters), maxLength: 12 }),
    )
    const names = fc.array(letters, { minLength: 1, maxLength: 60 })
    const { pieces } = await start()
    await fc.assert(
      fc.asyncProperty(names, async (those) => {
        const kept = those.map((name) => name.replaceAll("\0", "").trim())
        const rows = those.map((name, n) => carrierRow(n + 1, n + 1, name))
        await importTexts(path, { "l.csv": legacyFile(...rows) })
        for (const format of formats) {
          const expected = kept.map((name, n) => rowOf(n + 1, name, format)).join("")
          expect(await text(pieces({ start: 1, end: 200 }, format))).toBe(expected)
        }
      }),
      { numRuns: 25 },
    )
  })

  it("come in pieces that end with all carriers of their last number", async () => {
    await fill("X", 1700, 3)
    const { pieces } = await start()
    const those = await pieces({ start: 1, end: 99_999_999 }, "csv")
    expect(those.map(({ done }) => done)).toEqual([667, 1334, 99_999_999])
    expect(those.map(({ found }) => found)).toEqual([2001, 4002, 5100])
    expect(
      those.map(({ rows }) => textOf([{ done: 0, found: 0, rows }]).split("\n").length - 1),
    ).toEqual([2001, 2001, 1098])
  })

  it("are asked for no faster than they are taken, one piece ahead", async () => {
    await fill("X", 20_000)
    const messages: Array<unknown> = []
    const program = join(folder, "counting.ts")
    const thread = new URL("../../adapters/carrier-search/mirror-thread.ts", import.meta.url)
    const spy =
      'import { parentPort } from "node:worker_threads"\n' +
      'import { appendFileSync } from "node:fs"\n' +
      `const report = (text) => appendFileSync("${folder}/asked", text + "\\n")\n` +
      'parentPort.on("message", (message) => report(JSON.stringify(message)))\n'
    writeFileSync(program, `${spy}await import("${thread.href}")\n`)
    const { slowly } = await start({ thread: { program: pathToFileURL(program) } })
    const pending = () => readFileSync(join(folder, "asked"), "utf8").trim().split("\n").length
    for await (const piece of slowly({ start: 1, end: 20_000 })) {
      messages.push(piece)
      if (messages.length === 2) break
    }
    await expect.poll(pending).toBe(4)
    expect(readFileSync(join(folder, "asked"), "utf8").split("\n")[3]).toMatch(/"end":true/)
  })
})

describe("a mirror that is replaced", () => {
  it("is seen by the next search, and the ones under way end on the old one", async () => {
    await fill("OLD", 9000)
    const { slowly, pieces, source } = await start()
    const names: Array<string> = []
    let is_first = true
    for await (const piece of slowly({ start: 1, end: 9000 })) {
      names.push(textOf([piece]))
      if (!is_first) continue
      is_first = false
      await fill("NEW", 9000)
      expect(await text(pieces({ start: 1, end: 2 }))).toMatch(/NEW 0.*\n.*NEW 1/)
      // The new file is replaced in turn: three files are in use.
      await fill("NEWEST", 2)
      expect(await text(pieces({ start: 1, end: 2 }))).toMatch(/NEWEST 0.*\n.*NEWEST 1/)
    }
    expect(names.join("").match(/"OLD \d+"/g)).toHaveLength(9000)
    expect(await source()).toMatchObject({ carriers: 2, dockets: 2 })
  })

  it("leaves no file open when its last search has ended", async () => {
    const { pieces, slowly } = await start()
    /** Open files of the whole process, threads included; deleted files are also listed. */
    const open = () =>
      readdirSync("/proc/self/fd").filter((fd) => placeOf(fd).includes("carriers.sqlite")).length
    for (let n = 0; n < 3; n++) {
      await fill(`ROUND ${n}`, 5000)
      // Stopped after its first piece, while another one is on its way.
      for await (const piece of slowly({ start: 1, end: 5000 })) if (piece.done > 0) break
      await pieces(range)
    }
    await expect.poll(open).toBe(1)
  })
})

describe("a mirror that cannot be searched", () => {
  const failed = (reason: RegExp) =>
    expect.objectContaining({
      _tag: "SearchFailed",
      failed: 100,
      first: 1,
      reason: expect.stringMatching(reason),
    })

  const unhealthy = async (reason: RegExp) => {
    const registry = await start()
    const failure = await registry.failure(range)
    expect(failure).toBeInstanceOf(SearchFailed)
    expect(failure).toEqual(failed(reason))
    expect(failure.reason).not.toContain(folder)
    const source = await registry.source()
    expect(source).toMatchObject({ is_healthy: false, carriers: null, dockets: null })
    expect(source.detail).toMatch(reason)
    expect(source.last_error).toMatch(reason)
    // A file is found as soon as it exists.
    await fill("X")
    expect(await text(registry.pieces(range))).toMatch(/X 0/)
    expect((await registry.source()).detail).toBeNull()
  }

  it("is missing", async () => {
    await unhealthy(/^no mirror exists yet; fill it with `almanac carriers import`$/)
  })

  it("is a text", async () => {
    writeFileSync(path, "mcNumber,name\n".repeat(1000))
    await unhealthy(/^the mirror is damaged; fill it with/)
  })

  it("is empty", async () => {
    writeFileSync(path, "")
    await unhealthy(/^the mirror's file is not a carrier mirror; fill it with/)
  })

  it("is SQLite's file of something else", async () => {
    new Sqlite(path).exec("create table carrier (key integer primary key)").close()
    await unhealthy(/^the mirror's file is not a carrier mirror; fill it with/)
  })

  it("is of another version", async () => {
    await fill("X")
    new Sqlite(path).exec("pragma user_version = 99").close()
    await unhealthy(/^the mirror was made by another version of Almanac; fill it with/)
  })

  it("is cut off", async () => {
    await fill("X", 5000)
    truncateSync(path, 16_384)
    await unhealthy(/^the mirror is damaged; fill it with/)
  })

  it("has lost what its rows stand in", async () => {
    await fill("X", 5000)
    const bytes = readFileSync(path)
    bytes.fill(0xff, 8192)
    writeFileSync(path, bytes)
    await unhealthy(/^the mirror is damaged; fill it with/)
  })

  it("is damaged behind the part that was sent, which is reported", async () => {
    await fill("X", 20_000)
    const { failure } = await start()
    const size = readFileSync(path).length
    const bytes = readFileSync(path)
    bytes.fill(0xff, Math.floor(size / 8192 / 2) * 8192)
    writeFileSync(path, bytes)
    const { first, failed, reason } = await failure({ start: 1, end: 20_000 })
    expect(first).toBeGreaterThan(2000)
    expect(first + failed).toBe(20_001)
    expect(reason).toMatch(/^the mirror is damaged/)
  })
})

describe("the thread of a mirror", () => {
  const programOf = (text: string) => {
    const program = join(folder, "thread.mjs")
    writeFileSync(program, `import { parentPort } from "node:worker_threads"\n${text}\n`)
    return pathToFileURL(program)
  }

  it("that ends in a search fails it, and the next starts another", async () => {
    const thread = new URL("../../adapters/carrier-search/mirror-thread.ts", import.meta.url)
    const once = join(folder, "once")
    const program = programOf(
      `import { existsSync, writeFileSync } from "node:fs"
      if (existsSync("${once}")) await import("${thread.href}")
      else parentPort.once("message", () => {
        writeFileSync("${once}", "")
        process.exit(1)
      })`,
    )
    await fill("X")
    const { failure, pieces } = await start({ thread: { program } })
    expect((await failure(range)).reason).toBe("the mirror thread ended")
    expect(existsSync(once)).toBe(true)
    expect(await text(pieces(range))).toMatch(/X 2/)
  })

  it("that throws fails every search under way", async () => {
    const program = programOf('parentPort.on("message", () => { throw new Error("no") })')
    const { failure } = await start({ thread: { program } })
    const failures = await Promise.all([failure(range), failure(range)])
    expect(failures.map(({ reason }) => reason)).toEqual(Array(2).fill("the mirror thread failed"))
  })

  it("that says nothing is given up", async () => {
    const program = programOf('parentPort.on("message", () => undefined)')
    const { failure } = await start({ thread: { program, response_ms_max: 50 } })
    expect((await failure(range)).reason).toBe("the mirror thread did not respond within 50 ms")
  })
})

describe("a search in a mirror", () => {
  it("takes turns with the others", async () => {
    await fill("X", 40_000)
    const { search } = await start()
    const order: Array<string> = []
    const one = (name: string) =>
      Stream.runForEach(search({ start: 1, end: 40_000 }, "csv"), () =>
        Effect.sync(() => order.push(name)),
      )
    await Effect.runPromise(
      Effect.all([one("a"), one("b"), one("c")], { concurrency: "unbounded", discard: true }),
    )
    expect(order).toHaveLength(60)
    // When one search is half done, the others are about as far.
    const half = order.slice(0, 30)
    for (const name of ["a", "b", "c"]) {
      expect(half.filter((other) => other === name).length).toBeGreaterThan(6)
    }
  })
})

describe("the status of a mirror", () => {
  it("is its age, its counts and its health", async () => {
    await importTexts(
      path,
      { "l.csv": legacyFile(carrierRow(1, 1, "A"), "MC2,2,I,N,N,B"), "m.csv": motusOf([filler]) },
      { imported_at: "2026-11-22T01:02:03.004Z", as_of: "2026-11-20T00:00:00.000Z" },
    )
    const { source, pieces } = await start()
    const values = {
      registry: "mirror",
      is_healthy: true,
      detail: null,
      carriers: 1,
      dockets: 3,
      is_demo: false,
      as_of: "2026-05-14T00:00:00.000Z",
      imported_at: "2026-11-22T01:02:03.004Z",
      concurrency: null,
      last_answer_at: null,
      last_error_at: null,
      last_error: null,
    }
    expect(await source()).toEqual(values)
    const since = new Date().toISOString()
    await pieces(range)
    const { last_answer_at, ...after } = await source()
    expect({ ...after, last_answer_at: null }).toEqual(values)
    expect(last_answer_at).toEqual(expect.any(String))
    expect(String(last_answer_at) >= since).toBe(true)
  })

  it("is as old as Motus where that is all", async () => {
    const as_of = "2026-11-20T00:00:00.000Z"
    await importTexts(path, { "m.csv": motusOf([filler]) }, { as_of, is_demo: true })
    const values = { as_of, is_demo: true, carriers: 0, dockets: 1 }
    expect(await (await start()).source()).toMatchObject(values)
  })
})

describe("the file of a mirror", () => {
  it("is in the data folder, or where carrier.mirror says", () => {
    const data = { dir: folder }
    expect(mirrorFile(settingsWith({ data }))).toBe(path)
    const elsewhere = join(folder, "elsewhere.sqlite")
    expect(mirrorFile(settingsWith({ data, carrier: { mirror: elsewhere } }))).toBe(elsewhere)
  })

  it("exists or is missing", async () => {
    expect(hasMirror(path)).toBe(false)
    expect(hasMirror(folder)).toBe(false)
    await fill("X")
    expect(hasMirror(path)).toBe(true)
    copyFileSync(path, `${path}.copy`)
    renameSync(`${path}.copy`, path)
    expect(await text((await start()).pieces(range))).toMatch(/X 0/)
  })
})
