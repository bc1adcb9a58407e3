/** A third party checks an export against heads that it kept, to detect changes by the operator. */
import { execFile, execFileSync } from "node:child_process"
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { gzipSync } from "node:zlib"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Stream } from "effect"
import { exportChunks } from "#actors/system/export.ts"
import { Notary, signedHead } from "#actors/system/notary.ts"
import { empty_tree, leafOf, rootOf, withLeaf } from "#actors/system/tree.ts"
import { digest, sha256 } from "#journal"
import { describeAbsent } from "../../world/programs/absent.ts"
import { count, emptyLog, sealedStory, settled } from "../../world/system/sealed.ts"

const checker = new URL("../../../docs/examples/verify-proof.py", import.meta.url).pathname

/** Milliseconds for one run of the checker on a busy machine. */
const check_ms_max = 60_000

const has_python = (() => {
  try {
    execFileSync("python3", ["-c", "import hashlib, json"], { stdio: "ignore" })
    return true
  } catch {
    return false
  }
})()

interface Asked {
  readonly file: string
  readonly key: string
  readonly kept: ReadonlyArray<string>
  readonly is_packed?: boolean
}

/** The checker's verdict on an export. */
const verdict = ({ file, key, kept, is_packed = false }: Asked) =>
  Effect.promise(async () => {
    const folder = mkdtempSync(join(tmpdir(), "almanac-export-"))
    const path = join(folder, is_packed ? "log.ndjson.gz" : "log.ndjson")
    writeFileSync(path, is_packed ? gzipSync(file) : file)
    const heads = kept.map((head, i) => {
      const name = join(folder, `head-${i}.txt`)
      writeFileSync(name, head)
      return name
    })
    const result = await new Promise<{ code: number; out: string; err: string }>((resolve) =>
      execFile(
        "python3",
        [checker, path, key, ...heads],
        { timeout: check_ms_max },
        (error, out, err) => resolve({ code: error === null ? 0 : Number(error.code), out, err }),
      ),
    )
    rmSync(folder, { recursive: true })
    return result
  })

const sizeOf = (head: string) => Number(head.split("\n")[1])

/** An export of a log that kept growing after each of two heads was kept. */
const story = Effect.gen(function* () {
  yield* sealedStory
  const kept = (yield* signedHead) ?? ""
  for (let i = 41; i <= 60; i++) {
    yield* count("b", i)
    yield* settled
  }
  const later = (yield* signedHead) ?? ""
  const pieces = yield* Stream.runCollect(exportChunks({ part: "" }))
  const { key, sign } = yield* Notary
  return { file: pieces.join(""), key: key.verifier, kept, later, sign }
}).pipe(Effect.scoped)

interface Line {
  readonly position: number
  readonly stream: string
  readonly commit: Readonly<Record<string, unknown>>
}

/** The operator's version of an export, with new hashes, chains, manifest and head. */
const written = (
  lines: ReadonlyArray<Line>,
  {
    manifest,
    sign,
  }: {
    readonly manifest: Readonly<Record<string, unknown>>
    readonly sign: Notary["Service"]["sign"]
  },
) => {
  const last = new Map<string, string>()
  let tree = empty_tree
  const texts = lines.map(({ stream, commit }, i) => {
    const position = i + 1
    const prev = last.get(stream) ?? sha256(stream)
    const text = JSON.stringify({ ...commit, prev })
    const hash = sha256(text)
    last.set(stream, hash)
    tree = withLeaf(digest, tree, leafOf(digest, { position, stream, hash }))
    const place = JSON.stringify({ position, stream, hash, prev })
    return `${place.slice(0, -1)},"commit":${text}}\n`
  })
  const all = texts.join("")
  const head = sign({ size: tree.size, root: rootOf(digest, tree) })
  const last_line = { ...manifest, count: lines.length, head, sha256: sha256(all) }
  return `${all}${JSON.stringify(last_line)}\n`
}

const tamperedAt = 7

/** Ways for an operator to change commits up to a kept head and recompute everything else. */
const tamperings: Readonly<Record<string, (lines: ReadonlyArray<Line>) => ReadonlyArray<Line>>> = {
  "a changed event": (lines) =>
    lines.map((one) =>
      one.position === tamperedAt
        ? { ...one, commit: { ...one.commit, events: [{ type: "Counted", by: 1000 }] } }
        : one,
    ),
  "another actor": (lines) =>
    lines.map((one) =>
      one.position === tamperedAt ? { ...one, commit: { ...one.commit, actor: "nobody" } } : one,
    ),
  "a commit that was left out": (lines) => lines.filter(({ position }) => position !== tamperedAt),
  "a commit that was put in": (lines) =>
    lines.flatMap((one) => (one.position === 3 ? [one, one] : one)),
  "two commits that changed places": (lines) =>
    lines.map((one, i) => (i === 3 ? (lines[4] ?? one) : i === 4 ? (lines[3] ?? one) : one)),
}

const whenChecked = () =>
  describe("an export checked against a kept head by a third party", () => {
    it.effect("is proven if the log continues that head, compressed or not", () =>
      Effect.gen(function* () {
        const { file, key, kept, later } = yield* story
        const result = yield* verdict({ file, key, kept: [later, kept] })
        const commits = file.trimEnd().split("\n").length - 1
        const matchOf = (head: string) =>
          `the first ${sizeOf(head)} of ${commits} commits match the kept head\n`
        assert.deepEqual(result, { code: 0, out: matchOf(kept) + matchOf(later), err: "" })
        const packed = yield* verdict({ file, key, kept: [kept], is_packed: true })
        assert.deepEqual(packed, { code: 0, out: matchOf(kept), err: "" })
      }).pipe(Effect.provide(emptyLog)),
    )

    it.effect("is rejected if the operator changed anything before that head", () =>
      Effect.gen(function* () {
        const { file, key, kept, later, sign } = yield* story
        const all = file.trimEnd().split("\n")
        const lines = all.slice(0, -1).map((line): Line => JSON.parse(line))
        const manifest = JSON.parse(all.at(-1) ?? "")
        assert.equal(
          (yield* verdict({ file: written(lines, { manifest, sign }), key, kept: [kept] })).code,
          0,
        )
        for (const [what, tamper] of Object.entries(tamperings)) {
          const changed = written(tamper(lines), { manifest, sign })
          const { code, out, err } = yield* verdict({ file: changed, key, kept: [kept] })
          assert.deepEqual([what, code, out], [what, 1, ""])
          assert.include(err, `is in positions 1 to ${sizeOf(kept)}:`, what)
        }
        // Of several heads, the last valid one determines where the changes begin.
        const late = lines.map((one) =>
          one.position === sizeOf(kept) + 1
            ? { ...one, commit: { ...one.commit, actor: "x" } }
            : one,
        )
        const options = { file: written(late, { manifest, sign }), key }
        assert.equal((yield* verdict({ ...options, kept: [kept] })).code, 0)
        const both = yield* verdict({ ...options, kept: [kept, later] })
        assert.include(both.err, `is in positions ${sizeOf(kept) + 1} to ${sizeOf(later)}:`)
      }).pipe(Effect.provide(emptyLog)),
    )

    it.effect("is rejected if it ends before that head, or is incomplete", () =>
      Effect.gen(function* () {
        const { file, key, kept, sign } = yield* story
        const all = file.trimEnd().split("\n")
        const manifest = JSON.parse(all.at(-1) ?? "")
        const lines = all.slice(0, -1).map((line): Line => JSON.parse(line))
        const short = written(lines.slice(0, sizeOf(kept) - 1), { manifest, sign })
        const result = yield* verdict({ file: short, key, kept: [kept] })
        assert.include(result.err, `ends at ${sizeOf(kept) - 1}, before the kept head`)
        const cut = yield* verdict({ file: all.slice(0, -1).join("\n"), key, kept: [kept] })
        assert.include(cut.err, "no manifest")
      }).pipe(Effect.provide(emptyLog)),
    )

    it.effect("is rejected without a kept head, and with one of another key or log", () =>
      Effect.gen(function* () {
        const { file, key, kept, sign } = yield* story
        assert.include((yield* verdict({ file, key, kept: [] })).err, "proves nothing")
        const other = sign({ size: 7, root: new Uint8Array(32) })
        assert.include((yield* verdict({ file, key, kept: [other] })).err, "positions 1 to 7")
        const forged = kept.replace(/\n(\S+)\n\n/, (_, root) => `\n${root.slice(1)}${root[0]}\n\n`)
        assert.include((yield* verdict({ file, key, kept: [forged] })).err, "signature")
      }).pipe(Effect.provide(emptyLog)),
    )

    it.effect("is rejected if its lines do not match their hashes", () =>
      Effect.gen(function* () {
        const { file, key, kept } = yield* story
        const result = (changed: string) =>
          Effect.map(verdict({ file: changed, key, kept: [kept] }), ({ err }) => err)
        const late = file.split("\n").findIndex((line) => line.includes('"position":60'))
        const changed = file
          .split("\n")
          .map((line, i) => (i === late ? line.replace('"actor":"', '"actor":"x') : line))
          .join("\n")
        assert.include(yield* result(changed), "position 60 does not match its hash")
        assert.include(yield* result(file.split("\n").slice(1).join("\n")), "export the whole log")
        assert.include(yield* result(`${file}{}\n`), "after the manifest")
      }).pipe(Effect.provide(emptyLog)),
    )
  })

if (has_python) whenChecked()
else describeAbsent("an export checked against a kept head", "python3", "Install Python 3.")
