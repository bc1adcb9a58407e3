import assert from "node:assert/strict"
import { spawnSync } from "node:child_process"
import { rmSync, statSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { setTimeout as sleep } from "node:timers/promises"
import { describe, it } from "@effect/vitest"
import { Effect, Exit, Logger, Scope } from "effect"
import { openBlobVolume } from "#adapters/blob-storage/open-volume.ts"
import type { VolumeEngine } from "#volume"
import { blobEngineContract } from "../../contract/blob-storage/engine.ts"
import { noise, parts, put, readAll } from "../../contract/blob-storage/engine-bytes.ts"
import { concurrency, journal } from "../../contract/blob-storage/engine-journal.ts"
import { tagIn } from "../../contract/blob-storage/node-engine-copies.ts"
import {
  filesUnder,
  flipBit,
  freshFolder,
  openEngine,
  segment_bytes,
} from "../../world/blob-storage/volume-folder.ts"

const kib = 1024
const mib = 1024 * kib

blobEngineContract(
  "a blob engine on a volume",
  (limits) =>
    Effect.flatMap(freshFolder, (dir) =>
      openBlobVolume({ dir: join(dir, "store"), segment_bytes, ...limits }),
    ),
  [concurrency, journal],
)

/** Runs the body on an engine with a fresh folder. */
const onFresh = (body: (engine: VolumeEngine, dir: string) => Promise<void>) =>
  Effect.gen(function* () {
    const dir = yield* freshFolder
    const engine = yield* openEngine(dir)
    yield* Effect.promise(() => body(engine, dir))
  })

describe("a blob engine on a volume that is opened again", () => {
  it.effect("has its blobs, tombstones and journal, and goes on counting", () =>
    Effect.gen(function* () {
      const dir = yield* freshFolder
      const write = async (engine: VolumeEngine) => {
        const small = await put(engine, noise(1, 3 * kib), { labels: { a: "é" } })
        const large = await put(engine, noise(2, 900 * kib))
        const gone = await put(engine, noise(3, 10))
        await engine.delete(gone.id, put.origin, 1000n)
        await engine.acknowledge(1)
        const facts = await engine.scan(0, 10)
        return { small, large, gone, usage: await engine.usage(), facts }
      }
      const first = yield* Effect.scoped(
        Effect.flatMap(openEngine(dir), (engine) => Effect.promise(() => write(engine))),
      )
      const engine = yield* openEngine(dir)
      yield* Effect.promise(async () => {
        assert.deepEqual(await engine.usage(), first.usage)
        assert.deepEqual(await engine.scan(0, 10), first.facts)
        assert.equal(first.facts.length, 3)
        assert.deepEqual(await engine.stat(first.small.id), first.small.meta)
        assert((await readAll(engine, first.small.id)).equals(noise(1, 3 * kib)))
        assert((await readAll(engine, first.large.id)).equals(noise(2, 900 * kib)))
        assert((await engine.tombstone(first.gone.id)) !== undefined)
        const next = await put(engine, noise(4, 10))
        assert(next.meta.created_at > (first.facts.at(-1)?.at ?? 0n))
        assert.equal((await engine.scan(4, 10))[0]?.cursor, 5)
      })
    }),
  )

  it.effect("refuses a second store on its folder and is not disturbed by it", () =>
    Effect.gen(function* () {
      const dir = yield* freshFolder
      const engine = yield* openEngine(dir)
      const upload = engine.upload(put.order, undefined)
      yield* Effect.promise(async () => {
        for (const part of parts(noise(1, mib), 100 * kib)) await upload.write(part)
        await put(engine, noise(2, 10))
      })
      const { message } = yield* Effect.flip(openEngine(dir))
      assert.match(
        message,
        /^The blob store cannot be opened: .*volume is in use by another store$/,
      )
      yield* Effect.promise(async () => {
        await upload.abort()
        assert.equal((await put(engine, noise(3, mib))).created, true)
      })
    }),
  )

  it.effect("gives its folder free with its scope, also where opening failed", () =>
    Effect.gen(function* () {
      const dir = yield* freshFolder
      const scope = yield* Scope.make()
      yield* openEngine(dir).pipe(Scope.provide(scope))
      yield* Scope.close(scope, Exit.void)
      const { id } = yield* Effect.scoped(
        Effect.flatMap(openEngine(dir), (engine) =>
          Effect.promise(() => put(engine, noise(1, 10))),
        ),
      )
      const engine = yield* openEngine(dir)
      assert.equal(Number((yield* Effect.promise(() => engine.stat(id))).size), 10)
    }),
  )

  it.effect("makes its folder private", () =>
    Effect.gen(function* () {
      const dir = yield* freshFolder
      yield* openEngine(dir)
      assert.equal(statSync(join(dir, "volume")).mode & 0o777, 0o700)
      const modes = filesUnder(dir, "volume").map((path) => statSync(path).mode & 0o077)
      assert(modes.length > 0)
      assert.deepEqual(new Set(modes), new Set([0]))
    }).pipe(Effect.scoped),
  )
})

describe("the puts of a blob engine on a volume", () => {
  it.effect("come back whether put at once or uploaded, however they are cut", () =>
    onFresh(async (engine) => {
      for (const size of [256 * kib - 1, 256 * kib, 256 * kib + 1, mib, 3 * mib + 1]) {
        for (const cut of [7 * kib, 256 * kib, 300 * kib, 4 * mib]) {
          const bytes = noise(size + cut, size)
          const { id } = await put(engine, parts(bytes, cut))
          assert((await readAll(engine, id)).equals(bytes), `${size} in ${cut}`)
          await engine.delete(id, put.origin, 1000n)
          await engine.put(put.order, parts(bytes, cut), 1000n)
          assert((await readAll(engine, id)).equals(bytes), `${size} in ${cut}, at once`)
        }
      }
    }),
  )

  it.effect("give back what an upload that is aborted had of the capacity", () =>
    Effect.gen(function* () {
      const dir = yield* freshFolder
      const engine = yield* openBlobVolume({ dir, capacity_bytes: 4 * mib, segment_bytes })
      yield* Effect.promise(async () => {
        const upload = engine.upload(put.order, undefined)
        for (const part of parts(noise(1, 3 * mib), 100 * kib)) await upload.write(part)
        assert.equal(await tagIn(() => put(engine, noise(2, 2 * mib))), "BlobCapacityExceeded")
        await upload.abort()
        assert.equal((await put(engine, noise(2, 2 * mib))).created, true)
      })
    }),
  )
})

describe("a corrupt copy on a volume", () => {
  const large = 2 * mib + 100
  const damages = [
    [large, 0],
    [large, mib],
    [large, large - 40],
    [200 * kib, 100 * kib],
    [500, 400],
  ] as const
  for (const [size, position] of damages) {
    it.effect(`of ${size} bytes is detected, quarantined and reported: position ${position}`, () =>
      onFresh(async (engine, dir) => {
        const bytes = noise(1, size)
        const { id } = await put(engine, bytes)
        flipBit(dir, bytes, position)
        let offset = 0
        const read = async () => {
          const { windows } = await engine.get(id, {}, 2000n)
          for await (const window of windows()) {
            assert(Buffer.from(window).equals(bytes.subarray(offset, offset + window.length)))
            offset += window.length
          }
        }
        assert.equal(await tagIn(read), "BlobCorrupt")
        assert(offset <= position)
        assert.equal(await tagIn(() => engine.stat(id)), "BlobNotFound")
        const { payload_bytes, blob_count, quarantined } = await engine.usage()
        assert.deepEqual([payload_bytes, blob_count, quarantined], [0, 0, 1])
        assert.equal(filesUnder(dir, "volume/quarantine").length, 1)
        const [, fact] = await engine.scan(0, 10)
        assert.equal(`${fact?.kind} ${fact?.id} ${fact?.size}`, `quarantined ${id} ${size}`)
        assert.equal((await put(engine, bytes)).created, true)
        assert((await readAll(engine, id)).equals(bytes))
      }),
    )
  }

  it.live("is reported in the log if its remains cannot be kept", () => {
    const lines: Array<string> = []
    const heard = Logger.make(({ message }) => void lines.push(String(message)))
    return onFresh(async (engine, dir) => {
      const bytes = noise(1, 500)
      const { id } = await put(engine, bytes)
      const folder = join(dir, "volume", "quarantine")
      rmSync(folder, { recursive: true, force: true })
      writeFileSync(folder, "in the way")
      flipBit(dir, bytes, 400)
      assert.equal(await tagIn(() => engine.get(id, {}, 2000n)), "BlobCorrupt")
      while (lines.length === 0) await sleep(1)
      assert.match(lines.join(), new RegExp(`volume: ${id}.* could not be copied`))
    }).pipe(Effect.provide(Logger.layer([heard])))
  })

  it.effect("is detected by a range that touches it, and not by one that does not", () =>
    onFresh(async (engine, dir) => {
      const bytes = noise(1, large)
      const { id } = await put(engine, bytes)
      flipBit(dir, bytes, mib + 5)
      await readAll(engine, id, { offset: 0, length: 900 * kib })
      await readAll(engine, id, { offset: mib + 64 * kib })
      // Another byte of the same 64 KiB chunk: verification covers the whole chunk.
      const near = () => readAll(engine, id, { offset: mib + 9, length: 1 })
      assert.equal(await tagIn(near), "BlobCorrupt")
    }),
  )
})

describe("a blob engine on a volume in another process", () => {
  it.live(
    "streams 512 MiB in and out in flat memory",
    () =>
      Effect.gen(function* () {
        const dir = yield* freshFolder
        const script = join(import.meta.dirname, "volume-flow.ts")
        const { stdout, status } = spawnSync(process.execPath, [script, dir, "512"], {
          stdio: ["ignore", "pipe", "inherit"],
        })
        assert.equal(status, 0)
        const printed = JSON.parse(stdout.toString())
        assert.equal(printed.size, 512 * mib)
        assert.equal(printed.read, 512 * mib)
        const grown_mib = printed.highest_mib - printed.before_mib
        assert(grown_mib < 160, `memory grew by ${grown_mib} MiB over ${printed.before_mib}`)
      }).pipe(Effect.scoped),
    120_000,
  )
})
