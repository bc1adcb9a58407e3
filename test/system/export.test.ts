import { createHash } from "node:crypto"
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs"
import { connect } from "node:net"
import { join } from "node:path"
import { gunzipSync } from "node:zlib"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Stream } from "effect"
import { HttpRouter } from "effect/http"
import { HttpApi, HttpApiBuilder } from "effect/http-api"
import { type ExportRequest, exportChunks, partOf } from "#actors/system/export.ts"
import { type LogStanding, warningOf } from "#actors/system/log-standing.ts"
import { Notary } from "#actors/system/notary.ts"
import { notary, notaryKeyPath } from "#adapters/system/notary.ts"
import { exportTo } from "#cli/audit/export.ts"
import { Log, LogUnavailable } from "#events/log.ts"
import { AuditProofs } from "#gateway/system/apis/audit.ts"
import { auditHead, auditKey, exportAudit, logFigures } from "#gateway/system/audit.ts"
import { sha256 } from "#journal"
import type { ExportManifest } from "#schemas/system/audit.ts"
import { printed } from "../cli/printed.ts"
import { as, type Served, type Setup, serveHttp } from "../world/http.ts"
import { temporaryFolder } from "../world/programs/nats.ts"
import { count, emptyLog, hour, newKey, sealedStory } from "../world/system/sealed.ts"

interface Line {
  readonly position: number
  readonly stream: string
  readonly hash: string
  readonly prev: string
  readonly commit: { readonly prev: string; readonly at: string }
}

/** Parses the lines and manifest of an export using only what the guide documents. */
const read = (text: string) => {
  const lines = text.trimEnd().split("\n")
  const last = lines.pop() ?? ""
  const manifest = JSON.parse(last) as ExportManifest
  assert.equal(manifest.manifest, 1)
  const before = text.slice(0, text.length - last.length - 1)
  assert.equal(manifest.sha256, createHash("sha256").update(before).digest("hex"))
  const commits = lines.map((line) => JSON.parse(line) as Line)
  for (const [i, line] of lines.entries()) {
    const stored = line.slice(line.indexOf(',"commit":') + ',"commit":'.length, -1)
    assert.equal(sha256(stored), commits[i]?.hash)
    assert.equal(commits[i]?.prev, commits[i]?.commit.prev)
  }
  return { commits, manifest }
}

const all = (request: ExportRequest) =>
  Effect.map(Stream.runCollect(exportChunks(request)), (pieces) => read([...pieces].join("")))

const story = Effect.gen(function* () {
  yield* sealedStory
  return yield* (yield* Log).head("")
}).pipe(Effect.scoped)

describe("an export", () => {
  it.effect("has each commit as stored, and a manifest", () =>
    Effect.gen(function* () {
      const head = yield* story
      const { commits, manifest } = yield* all({ part: "" })
      assert.deepEqual(
        commits.map(({ position }) => position),
        Array.from({ length: head }, (_, i) => i + 1),
      )
      const { position, count: counted, first, last, heads_complete } = manifest
      assert.deepEqual([position, counted, first, last], [head, head, 1, head])
      assert.isTrue(heads_complete)
      assert.equal(manifest.heads.length, 3)
      for (const { stream, hash } of manifest.heads) {
        assert.equal(commits.findLast((one) => one.stream === stream)?.hash, hash)
      }
      assert.isAtLeast(manifest.checkpoints.length, 3)
      const { key } = yield* Notary
      assert.equal(manifest.key, key.verifier)
      assert.match(manifest.head ?? "", new RegExp(`^${key.name}\n\\d+\n\\S+\n\n\u2014 `))
    }).pipe(Effect.provide(emptyLog)),
  )

  it.effect("may select one aggregate, a kind, or a period", () =>
    Effect.gen(function* () {
      yield* story
      const positions = (request: ExportRequest) =>
        Effect.map(all(request), ({ commits, manifest }) => {
          assert.equal(manifest.count, commits.length)
          return commits
        })
      const one = yield* positions({ part: "test.counter.a" })
      assert.equal(one.length, 13)
      assert.deepEqual([...new Set(one.map(({ stream }) => stream))], ["test.counter.a"])
      assert.equal((yield* positions({ part: "test" })).length, 40)
      const [since, until] = [Date.parse(hour(3)), Date.parse(hour(5))]
      const times = new Set(
        (yield* positions({ part: "test", since, until })).map(({ commit }) => commit.at),
      )
      assert.deepEqual([...times].sort(), [hour(3), hour(4)])
      const none = yield* all({ part: "none" })
      assert.deepEqual([none.commits.length, none.manifest.first], [0, null])
    }).pipe(Effect.provide(emptyLog)),
  )

  it.effect("ends at the log's end at its start", () =>
    Effect.gen(function* () {
      for (let i = 1; i <= 3; i++) yield* count("a", i)
      let came = 0
      const pieces = yield* exportChunks({ part: "" }).pipe(
        Stream.tap(() => (came++ === 0 ? Effect.orDie(count("a", 9)) : Effect.void)),
        Stream.runCollect,
      )
      const { manifest } = read([...pieces].join(""))
      assert.deepEqual([manifest.count, manifest.position], [3, 3])
    }).pipe(Effect.provide(emptyLog)),
  )

  it("names its part by a service, a kind or an aggregate", () => {
    assert.equal(partOf(undefined, undefined), "")
    assert.equal(partOf("blob-storage", undefined), "blob-storage")
    assert.equal(partOf("blob-storage", "cluster"), "blob-storage.cluster")
    assert.equal(partOf(undefined, "blob-storage.cluster.x"), "blob-storage.cluster.x")
    assert.isUndefined(partOf(undefined, "cluster"))
    assert.isUndefined(partOf("plant-disease", "blob-storage.cluster.x"))
  })

  it.effect("is a private file, also compressed, and never overwrites another", () =>
    Effect.gen(function* () {
      yield* story
      const folder = yield* temporaryFolder
      const [plain, packed] = [join(folder, "log.ndjson"), join(folder, "log.ndjson.gz")]
      yield* printed(exportTo({ part: "" }, { path: plain, gzip: false }))
      yield* printed(exportTo({ part: "" }, { path: packed, gzip: true }))
      assert.equal(statSync(plain).mode & 0o777, 0o600)
      const text = readFileSync(plain, "utf8")
      assert.equal(gunzipSync(readFileSync(packed)).toString(), text)
      read(text)
      const again = yield* Effect.flip(exportTo({ part: "" }, { path: plain, gzip: false }))
      assert.include(String(again), "cannot be written")
    }).pipe(Effect.scoped, Effect.provide(emptyLog)),
  )
})

const Api = HttpApi.make("system").add(AuditProofs)
const handlers = HttpApiBuilder.group(Api, "audit-proofs", (group) =>
  group
    .handle("export", exportAudit)
    .handle("head", () => auditHead)
    .handle("key", () => auditKey)
    .handle("log", () => logFigures),
)

const withRoutes = <A>(
  body: (served: Served) => Promise<A>,
  over: (log: Log["Service"]) => Log["Service"] = (log) => log,
  setup: Setup = {},
) =>
  Effect.gen(function* () {
    const context = yield* Effect.context<Log | LogStanding | Notary>()
    const served = yield* serveHttp(
      [
        {
          name: "system",
          api: Api,
          routes: Effect.map(
            HttpRouter.toHttpEffect(HttpApiBuilder.layer(Api).pipe(Layer.provide(handlers))),
            Effect.provideContext(context),
          ),
        },
      ],
      setup,
    )
    return yield* Effect.promise(() => body(served))
  }).pipe(Effect.scoped, Effect.updateService(Log, over))

describe("the audit export over HTTP", () => {
  it.live("returns the log or a part of it as lines", () =>
    Effect.gen(function* () {
      yield* story
      yield* withRoutes(async ({ fetch }) => {
        const get = (path: string) => fetch(`/v1/admin/audit/${path}`, { headers: as("admin") })
        const response = await get("export?aggregate=test.counter.a")
        assert.equal(response.headers.get("content-type"), "application/x-ndjson")
        assert.equal(read(await response.text()).commits.length, 13)
        assert.equal((await get("export?aggregate=counter")).status, 400)
        const head = (await (await get("head")).json()) as { head: string; key: string }
        const key = (await (await get("key")).json()) as { verifier: string; public_key: string }
        assert.equal(head.key, key.verifier)
        assert.match(key.public_key, /^-----BEGIN PUBLIC KEY-----/)
        assert.notInclude(JSON.stringify(key), "PRIVATE")
      })
    }).pipe(Effect.provide(emptyLog)),
  )

  it.live("reports in the last line that the log became unavailable", () =>
    Effect.gen(function* () {
      yield* story
      const cut = (log: Log["Service"]): Log["Service"] => ({
        ...log,
        entries: (part, position) =>
          Stream.concat(
            Stream.take(log.entries(part, position), 5),
            Stream.fail(new LogUnavailable({ detail: "no bus" })),
          ),
      })
      yield* withRoutes(async ({ fetch }) => {
        const response = await fetch("/v1/admin/audit/export", { headers: as("admin") })
        const last = (await response.text()).trimEnd().split("\n").at(-1) ?? ""
        assert.deepEqual(JSON.parse(last).error.detail, "no bus")
      }, cut)
    }).pipe(Effect.provide(emptyLog)),
  )

  const hurried: Setup = { settings: { api: { request_timeout_seconds: 1 } } }

  it.live("continues while the log is read without a line for longer than the idle limit", () =>
    Effect.gen(function* () {
      yield* story
      const slowly = (log: Log["Service"]): Log["Service"] => ({
        ...log,
        entries: (part, position) => {
          const all = log.entries(part, position)
          const wait = Stream.drain(Stream.fromEffect(Effect.sleep("1800 millis")))
          return Stream.concat(Stream.take(all, 5), Stream.concat(wait, Stream.drop(all, 5)))
        },
      })
      yield* withRoutes(
        async ({ fetch }) => {
          const path = "/v1/admin/audit/export?aggregate=test.counter.a"
          const response = await fetch(path, { headers: as("admin") })
          assert.equal(read(await response.text()).commits.length, 13)
        },
        slowly,
        hurried,
      )
    }).pipe(Effect.provide(emptyLog)),
  )

  it.live("is cut off if its client does not read", () =>
    Effect.gen(function* () {
      yield* story
      const ended = Promise.withResolvers<void>()
      const endlessly = (log: Log["Service"]): Log["Service"] => ({
        ...log,
        entries: (part) =>
          Stream.forever(log.entries(part, 0)).pipe(
            Stream.ensuring(Effect.sync(() => ended.resolve())),
          ),
      })
      yield* withRoutes(
        async ({ port }) => {
          const client = connect(port, "127.0.0.1")
          client.on("error", () => undefined)
          client.write(
            "GET /v1/admin/audit/export HTTP/1.1\r\nhost: x\r\nauthorization: Bearer admin\r\n\r\n",
          )
          client.pause()
          await ended.promise
          client.destroy()
        },
        endlessly,
        hurried,
      )
    }).pipe(Effect.provide(emptyLog)),
  )

  it.live("responds with 404 while nothing is sealed", () =>
    withRoutes(async ({ fetch }) => {
      const response = await fetch("/v1/admin/audit/head", { headers: as("admin") })
      assert.equal(response.status, 404)
    }).pipe(Effect.provide(emptyLog)),
  )

  it.live("is for operators only", () =>
    withRoutes(async ({ fetch }) => {
      for (const path of ["audit/export", "audit/head", "audit/key", "log"]) {
        assert.equal((await fetch(`/v1/admin/${path}`)).status, 401, path)
        const reader = await fetch(`/v1/admin/${path}`, { headers: as("reader") })
        assert.equal(reader.status, 403, path)
      }
    }).pipe(Effect.provide(emptyLog)),
  )
})

describe("the log's size", () => {
  it.live("is served over HTTP", () =>
    withRoutes(async ({ fetch }) => {
      const response = await fetch("/v1/admin/log", { headers: as("admin") })
      assert.deepEqual(await response.json(), {
        generation: 1,
        position: 9,
        aggregates: 2,
        bytes: 50,
        limit_bytes: 100,
        used_share: 0.5,
      })
    }).pipe(Effect.provide(emptyLog)),
  )

  it("causes warnings from 70% and from 85%", () => {
    const at = (bytes: number) =>
      warningOf({
        generation: 1,
        position: 9,
        aggregates: 2,
        bytes,
        limit_bytes: 100,
        used_share: bytes / 100,
      })
    assert.isUndefined(at(69))
    assert.equal(at(70)?.passed, 0.7)
    assert.equal(at(84)?.passed, 0.7)
    assert.equal(at(85)?.passed, 0.85)
    assert.include(at(90)?.text, "90 of 100 bytes, more than 85%: free space on its disk, or")
  })
})

describe("the installation's key", () => {
  it.live("is created once, also concurrently, and only its owner may read it", () =>
    Effect.gen(function* () {
      const folder = mkdtempSync(join(yield* temporaryFolder, "data-"))
      const made = Effect.provide(Notary, Layer.fresh(notary(folder)))
      const keys = yield* Effect.all([made, made, made], { concurrency: "unbounded" })
      assert.equal(new Set([...keys, yield* made].map(({ key }) => key.verifier)).size, 1)
      assert.equal(statSync(notaryKeyPath(folder)).mode & 0o777, 0o600)
    }).pipe(Effect.scoped),
  )

  it.live("is read from the configured file, and then none is created", () =>
    Effect.gen(function* () {
      const folder = yield* temporaryFolder
      const [own, other] = [join(folder, "own"), join(folder, "other")]
      const { key } = yield* Effect.provide(Notary, Layer.fresh(notary(own)))
      const same = yield* Effect.provide(Notary, notary(other, notaryKeyPath(own)))
      assert.equal(same.key.verifier, key.verifier)
      assert.isFalse(existsSync(other))
      const failure = yield* Effect.flip(Effect.provide(Notary, notary(other, join(own, "none"))))
      assert.include(failure.message, "audit.key_file")
    }).pipe(Effect.scoped),
  )

  it.live("is never replaced: an invalid file is an error that does not reveal it", () =>
    Effect.gen(function* () {
      const folder = yield* temporaryFolder
      writeFileSync(notaryKeyPath(folder), "-----BEGIN PRIVATE KEY-----\nsecret\n")
      const failure = yield* Effect.flip(Effect.provide(Notary, notary(folder)))
      assert.include(failure.message, "is not an Ed25519 key")
      assert.notInclude(failure.message, "secret")
      rmSync(notaryKeyPath(folder))
      assert.notEqual(newKey().key.name, newKey().key.name)
    }).pipe(Effect.scoped),
  )
})
