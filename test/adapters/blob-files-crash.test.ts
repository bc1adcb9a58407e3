/**
 * The plain blob store in processes of its own: killed without warning, and fed more than memory
 * holds.
 */
import assert from "node:assert/strict"
import { describe, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import type { BlobFact } from "#actors/blob-storage/blob-store.ts"
import { BlobId } from "#schemas/blob-storage/blob.ts"
import { noise, readAll } from "../contract/blob-store-bytes.ts"
import { filesUnder, freshFolder, openStore, startScript } from "./blob-files-folder.ts"

const rounds = 3
const lines_per_round = 400

const Line = Schema.Union([
  Schema.Struct({
    kind: Schema.tag("stored"),
    seed: Schema.Int,
    size: Schema.Int,
    id: BlobId,
  }),
  Schema.Struct({ kind: Schema.Literals(["deleting", "deleted"]), id: BlobId }),
])
type Line = typeof Line.Type
const decodeLine = Schema.decodeUnknownSync(Line)

/** Runs the putter until it has printed enough, kills it, and answers all that it printed. */
const putUntilKilled = async (dir: string, first: number) => {
  const { child, lines, exited } = startScript("blob-files-putter.ts", dir, String(first))
  const printed: Array<Line> = []
  for await (const text of lines) {
    printed.push(decodeLine(JSON.parse(text)))
    if (printed.length === lines_per_round) child.kill("SIGKILL")
  }
  await exited
  assert.equal(child.signalCode, "SIGKILL")
  return printed
}

/** What must be there, and what may or may not be: a delete that was not answered is either. */
const expectationsOf = (printed: ReadonlyArray<Line>) => {
  const ids = (kind: Line["kind"]) =>
    new Set(printed.filter((line) => line.kind === kind).map(({ id }) => id))
  const stored = printed.filter((line) => line.kind === "stored")
  const deleting = ids("deleting")
  return { present: stored.filter(({ id }) => !deleting.has(id)), absent: ids("deleted"), stored }
}

const stateAfter = (facts: ReadonlyArray<BlobFact>) => {
  const ids = new Set<string>()
  for (const { kind, id } of facts) {
    assert(kind === "stored" || kind === "deleted")
    assert.equal(ids.has(id), kind === "deleted")
    if (kind === "stored") ids.add(id)
    else ids.delete(id)
  }
  return Array.from(ids).sort()
}

const assertNothingLost = (dir: string, printed: ReadonlyArray<Line>) =>
  Effect.gen(function* () {
    const store = yield* openStore(dir)
    const { present, absent, stored } = expectationsOf(printed)
    const { ids } = yield* store.list({ limit: 10_000 })
    const listed = new Set(ids)
    assert(present.every(({ id }) => listed.has(id)))
    const known = new Map(stored.map((line) => [line.id, line]))
    for (const id of ids) {
      assert(!absent.has(id), "an acknowledged delete is undone")
      const bytes = yield* readAll(store, id)
      const line = known.get(id)
      if (line) assert(Buffer.from(bytes).equals(noise(line.seed, line.size)))
    }
    const facts: Array<BlobFact> = []
    for (;;) {
      const page = yield* store.scan(facts.at(-1)?.cursor ?? 0, 1000)
      if (page.length === 0) break
      facts.push(...page)
    }
    assert.deepEqual(stateAfter(facts), ids)
    const told = new Set(facts.filter(({ kind }) => kind === "stored").map(({ id }) => id))
    assert(stored.every(({ id }) => told.has(id)))
    assert.deepEqual(filesUnder(dir, "incoming"), [])
    assert.equal(filesUnder(dir, "blobs").length, ids.length)
  })

describe("a blob store of plain files in another process", () => {
  it.live(
    "keeps all that it acknowledged when it is killed, and nothing half done",
    () =>
      Effect.gen(function* () {
        const dir = yield* freshFolder
        const printed: Array<Line> = []
        for (let round = 0; round < rounds; round++) {
          printed.push(...(yield* Effect.promise(() => putUntilKilled(dir, round * 1_000_000))))
          yield* Effect.scoped(assertNothingLost(dir, printed))
        }
        assert(printed.length >= rounds * lines_per_round)
      }).pipe(Effect.scoped),
    60_000,
  )

  it.live(
    "streams 1 GiB in and out in flat memory",
    () =>
      Effect.gen(function* () {
        const dir = yield* freshFolder
        const { lines, exited } = startScript("blob-files-flow.ts", dir, "1024")
        const printed = yield* Effect.promise(async () => {
          let text = ""
          for await (const line of lines) text += line
          assert.equal(await exited, 0)
          return JSON.parse(text)
        })
        assert.equal(printed.size, 1024 ** 3)
        assert.equal(printed.read, 1024 ** 3)
        const grown_mib = printed.highest_mib - printed.before_mib
        assert(grown_mib < 160, `memory grew by ${grown_mib} MiB over ${printed.before_mib}`)
      }).pipe(Effect.scoped),
    120_000,
  )
})
