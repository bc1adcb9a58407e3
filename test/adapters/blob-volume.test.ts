import assert from "node:assert/strict"
import { spawnSync } from "node:child_process"
import { rmSync, statSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { describe, it } from "@effect/vitest"
import { Deferred, Effect, Exit, Fiber, Layer, Logger, Scope, Stream } from "effect"
import { HotEngine } from "#actors/blob-storage/blobs/engine.ts"
import { BlobStore } from "#actors/blob-storage/blobs/store.ts"
import { blobVolume, openBlobVolume, storeOf } from "#adapters/blob-storage/blob-volume.ts"
import { blobStoreContract } from "../contract/blob-store.ts"
import { noise, parts, put, readAll } from "../contract/blob-store-bytes.ts"
import { concurrency, journal } from "../contract/blob-store-journal.ts"
import {
  capacity_bytes,
  filesUnder,
  flipBit,
  freshFolder,
  openStore,
  segment_bytes,
} from "./blob-volume-folder.ts"

const kib = 1024
const mib = 1024 * kib

blobStoreContract(
  "a blob store on a volume",
  (limits) =>
    Layer.unwrap(
      Effect.map(freshFolder, (dir) =>
        blobVolume({ dir: join(dir, "store"), segment_bytes, ...limits }),
      ),
    ),
  [concurrency, journal],
)

describe("a blob store on a volume that is opened again", () => {
  it.effect("has its blobs, tombstones and journal, and goes on counting", () =>
    Effect.gen(function* () {
      const dir = yield* freshFolder
      const first = yield* Effect.scoped(
        Effect.gen(function* () {
          const store = yield* openStore(dir)
          const small = yield* put(store, noise(1, 3 * kib), { labels: { a: "é" } })
          const large = yield* put(store, noise(2, 900 * kib))
          const gone = yield* put(store, noise(3, 10))
          yield* store.delete(gone.id, put.origin)
          yield* store.acknowledge(1)
          const facts = yield* store.scan(0, 10)
          return { small, large, gone, usage: yield* store.usage, facts }
        }),
      )
      const store = yield* openStore(dir)
      assert.deepEqual(yield* store.usage, first.usage)
      assert.deepEqual(yield* store.scan(0, 10), first.facts)
      assert.equal(first.facts.length, 3)
      assert.deepEqual(yield* store.stat(first.small.id), first.small.meta)
      assert(Buffer.from(yield* readAll(store, first.small.id)).equals(noise(1, 3 * kib)))
      assert(Buffer.from(yield* readAll(store, first.large.id)).equals(noise(2, 900 * kib)))
      assert((yield* store.tombstone(first.gone.id)) !== undefined)
      const next = yield* put(store, noise(4, 10))
      assert(next.meta.created_at > (first.facts.at(-1)?.at ?? 0n))
      assert.equal((yield* store.scan(4, 10))[0]?.cursor, 5)
    }).pipe(Effect.scoped),
  )

  it.effect("refuses a second store on its folder and is not disturbed by it", () =>
    Effect.gen(function* () {
      const dir = yield* freshFolder
      const store = yield* openStore(dir)
      const half = Stream.concat(parts(noise(1, mib), 100 * kib), Stream.never)
      const upload = yield* Effect.forkChild(put(store, half))
      yield* put(store, noise(2, 10))
      const { detail } = yield* Effect.flip(openStore(dir))
      assert.match(detail, /volume is in use by another store/)
      yield* Fiber.interrupt(upload)
      assert.equal((yield* put(store, noise(3, mib))).created, true)
    }).pipe(Effect.scoped),
  )

  it.effect("gives its folder free with its scope, also where opening failed", () =>
    Effect.gen(function* () {
      const dir = yield* freshFolder
      const scope = yield* Scope.make()
      yield* openStore(dir).pipe(Scope.provide(scope))
      yield* Scope.close(scope, Exit.void)
      const { id } = yield* Effect.scoped(
        Effect.flatMap(openStore(dir), (store) => put(store, noise(1, 10))),
      )
      const store = yield* openStore(dir)
      assert.equal(Number((yield* store.stat(id)).size), 10)
    }).pipe(Effect.scoped),
  )

  it.effect("lets nobody else look into its folder", () =>
    Effect.gen(function* () {
      const dir = yield* freshFolder
      yield* openStore(dir)
      assert.equal(statSync(join(dir, "volume")).mode & 0o777, 0o700)
      const modes = filesUnder(dir, "volume").map((path) => statSync(path).mode & 0o077)
      assert(modes.length > 0)
      assert.deepEqual(new Set(modes), new Set([0]))
    }).pipe(Effect.scoped),
  )
})

describe("the puts of a blob store on a volume", () => {
  it.effect("are small up to 256 KiB and uploads above, however they are cut", () =>
    Effect.gen(function* () {
      const dir = yield* freshFolder
      const store = yield* openStore(dir)
      for (const size of [256 * kib - 1, 256 * kib, 256 * kib + 1, mib, 3 * mib + 1]) {
        for (const cut of [7 * kib, 256 * kib, 300 * kib, 4 * mib]) {
          const bytes = noise(size + cut, size)
          const { id } = yield* put(store, parts(bytes, cut))
          assert(Buffer.from(yield* readAll(store, id)).equals(bytes), `${size} in ${cut}`)
        }
      }
    }).pipe(Effect.scoped),
  )

  it.effect("give back what an upload that is interrupted had of the capacity", () =>
    Effect.gen(function* () {
      const dir = yield* freshFolder
      const engine = yield* openBlobVolume({ dir, capacity_bytes: 4 * mib, segment_bytes })
      const store = storeOf(engine)
      const all_there = yield* Deferred.make<void>()
      const half = Stream.concat(
        parts(noise(1, 3 * mib), 100 * kib),
        Stream.fromEffect(Effect.andThen(Deferred.succeed(all_there, undefined), Effect.never)),
      )
      const upload = yield* Effect.forkChild(put(store, half))
      yield* Deferred.await(all_there)
      const { _tag } = yield* Effect.flip(put(store, noise(2, 2 * mib)))
      assert.equal(_tag, "BlobCapacityExceeded")
      yield* Fiber.interrupt(upload)
      assert.equal((yield* put(store, noise(2, 2 * mib))).created, true)
    }).pipe(Effect.scoped),
  )
})

describe("the layer of a blob store on a volume", () => {
  it.effect("gives hot routes the engine of the very store", () =>
    Effect.gen(function* () {
      const dir = yield* freshFolder
      const built = yield* Layer.build(blobVolume({ dir, capacity_bytes, segment_bytes }))
      yield* Effect.gen(function* () {
        const store = yield* BlobStore
        const engine = (yield* HotEngine) ?? assert.fail("there is no engine")
        const { id } = yield* put(store, noise(1, 10))
        const { data } = yield* Effect.promise(() => engine.get(id, {}, 0n))
        assert(Buffer.from(data ?? []).equals(noise(1, 10)))
      }).pipe(Effect.provideContext(built))
    }).pipe(Effect.scoped),
  )
})

describe("a corrupt copy in a blob store on a volume", () => {
  const large = 2 * mib + 100
  const damages = [
    [large, 0],
    [large, mib],
    [large, large - 40],
    [200 * kib, 100 * kib],
    [500, 400],
  ] as const
  for (const [size, position] of damages) {
    it.effect(`of ${size} bytes is detected, set aside and told: position ${position}`, () =>
      Effect.gen(function* () {
        const dir = yield* freshFolder
        const store = yield* openStore(dir)
        const bytes = noise(1, size)
        const { id } = yield* put(store, bytes)
        flipBit(dir, bytes, position)
        let offset = 0
        const read = store.get(id).pipe(
          Effect.flatMap((opened) =>
            Stream.runForEach(opened.bytes, (part) =>
              Effect.sync(() => {
                assert(Buffer.from(part).equals(bytes.subarray(offset, offset + part.length)))
                offset += part.length
              }),
            ),
          ),
        )
        assert.equal((yield* Effect.flip(read))._tag, "BlobCorrupt")
        assert(offset <= position)
        assert.equal((yield* Effect.flip(store.stat(id)))._tag, "BlobNotFound")
        const { payload_bytes, blob_count, quarantined } = yield* store.usage
        assert.deepEqual([payload_bytes, blob_count, quarantined], [0, 0, 1])
        assert.equal(filesUnder(dir, "volume/quarantine").length, 1)
        const [, fact] = yield* store.scan(0, 10)
        assert.equal(`${fact?.kind} ${fact?.id} ${fact?.size}`, `quarantined ${id} ${size}`)
        assert.equal((yield* put(store, bytes)).created, true)
        assert(Buffer.from(yield* readAll(store, id)).equals(bytes))
      }).pipe(Effect.scoped),
    )
  }

  it.live("is told in the log where its remains cannot be kept", () => {
    const lines: Array<string> = []
    const heard = Logger.make(({ message }) => void lines.push(String(message)))
    return Effect.gen(function* () {
      const dir = yield* freshFolder
      const store = yield* openStore(dir)
      const bytes = noise(1, 500)
      const { id } = yield* put(store, bytes)
      const folder = join(dir, "volume", "quarantine")
      rmSync(folder, { recursive: true, force: true })
      writeFileSync(folder, "in the way")
      flipBit(dir, bytes, 400)
      assert.equal((yield* Effect.flip(store.get(id)))._tag, "BlobCorrupt")
      while (lines.length === 0) yield* Effect.sleep(1)
      assert.match(lines.join(), new RegExp(`volume: ${id}.* could not be copied`))
    }).pipe(Effect.scoped, Effect.provide(Logger.layer([heard])))
  })

  it.effect("is detected by a range that touches it, and not by one that does not", () =>
    Effect.gen(function* () {
      const dir = yield* freshFolder
      const store = yield* openStore(dir)
      const bytes = noise(1, large)
      const { id } = yield* put(store, bytes)
      flipBit(dir, bytes, mib + 5)
      yield* readAll(store, id, { offset: 0, length: 900 * kib })
      yield* readAll(store, id, { offset: mib + 64 * kib })
      // Another byte of the same 64 KiB chunk: the chunk is verified whole.
      const near = readAll(store, id, { offset: mib + 9, length: 1 })
      assert.equal((yield* Effect.flip(near))._tag, "BlobCorrupt")
    }).pipe(Effect.scoped),
  )
})

describe("a blob store on a volume in another process", () => {
  it.live(
    "streams 512 MiB in and out in flat memory",
    () =>
      Effect.gen(function* () {
        const dir = yield* freshFolder
        const script = join(import.meta.dirname, "blob-volume-flow.ts")
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
