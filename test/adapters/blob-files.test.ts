import assert from "node:assert/strict"
import { spawnSync } from "node:child_process"
import {
  closeSync,
  openSync,
  readFileSync,
  readSync,
  rmSync,
  writeFileSync,
  writeSync,
} from "node:fs"
import { join } from "node:path"
import { describe, it } from "@effect/vitest"
import { Effect, Exit, Fiber, Layer, Scope, Stream } from "effect"
import { blobFiles, openBlobFiles } from "#adapters/blob-files.ts"
import { tableOf } from "#adapters/blob-files-format.ts"
import type { BlobId } from "#schemas/blob-storage/blob.ts"
import { blobStoreContract } from "../contract/blob-store.ts"
import { noise, parts, put, readAll } from "../contract/blob-store-bytes.ts"
import { concurrency, journal } from "../contract/blob-store-journal.ts"
import { capacity_bytes, filesUnder, freshFolder, openStore } from "./blob-files-folder.ts"

blobStoreContract(
  "a blob store of plain files",
  (limits) =>
    Layer.unwrap(
      Effect.map(freshFolder, (dir) => blobFiles({ dir: join(dir, "store"), ...limits })),
    ),
  [concurrency, journal],
)

const kib = 1024
const mib = 1024 * kib

const tagOf = <A>(effect: Effect.Effect<A, { readonly _tag: string }>) =>
  Effect.map(Effect.flip(effect), ({ _tag }) => _tag)

/** Turns one bit of a file round. */
const flipBit = (path: string, position: number) => {
  const file = openSync(path, "r+")
  const byte = Buffer.alloc(1)
  readSync(file, byte, 0, 1, position)
  byte[0] = (byte[0] ?? 0) ^ 4
  writeSync(file, byte, 0, 1, position)
  closeSync(file)
}

const fileOf = (dir: string, id: BlobId) => join(dir, "blobs", id.slice(0, 2), id)

describe("a plain blob store that is opened again", () => {
  it.effect("has its blobs, tombstones and journal, and goes on counting", () =>
    Effect.gen(function* () {
      const dir = yield* freshFolder
      const first = yield* Effect.scoped(
        Effect.gen(function* () {
          const store = yield* openStore(dir)
          const kept = yield* put(store, noise(1, 300 * kib), { labels: { a: "é" } })
          const gone = yield* put(store, noise(2, 10))
          yield* store.delete(gone.id, put.origin)
          assert.equal(filesUnder(dir, "blobs").length, 1)
          yield* store.acknowledge(1)
          return { kept, gone, usage: yield* store.usage, facts: yield* store.scan(0, 10) }
        }),
      )
      const store = yield* openStore(dir)
      assert.deepEqual(yield* store.usage, first.usage)
      assert.deepEqual(yield* store.scan(0, 10), first.facts)
      assert.deepEqual(yield* store.stat(first.kept.id), first.kept.meta)
      assert((yield* store.tombstone(first.gone.id)) !== undefined)
      const next = yield* put(store, noise(3, 10))
      assert(next.meta.created_at > (first.facts.at(-1)?.at ?? 0n))
      assert.equal((yield* store.scan(3, 10))[0]?.cursor, 4)
    }).pipe(Effect.scoped),
  )

  it.effect("removes what a crash left, and reports a blob whose file is gone", () =>
    Effect.gen(function* () {
      const dir = yield* freshFolder
      const id = yield* Effect.scoped(
        Effect.gen(function* () {
          const store = yield* openStore(dir)
          yield* put(store, noise(1, 10))
          return (yield* put(store, noise(2, 10))).id
        }),
      )
      const orphan = "0123456789abcdef0123456789abcdef" as BlobId
      writeFileSync(join(dir, "incoming", "7"), "half")
      writeFileSync(fileOf(dir, orphan), "whole, but never acknowledged")
      rmSync(fileOf(dir, id))
      const store = yield* openStore(dir)
      assert.deepEqual(filesUnder(dir, "incoming"), [])
      assert.equal(filesUnder(dir, "blobs").length, 1)
      assert.equal(yield* tagOf(store.get(id)), "BlobNotFound")
      assert.equal((yield* store.usage).quarantined, 1)
      const [, , lost] = yield* store.scan(0, 10)
      assert.equal(`${lost?.kind} ${lost?.id} ${lost?.size}`, `lost ${id} 10`)
    }).pipe(Effect.scoped),
  )

  it.effect("refuses to start where the index is gone and the blobs are not", () =>
    Effect.gen(function* () {
      const dir = yield* freshFolder
      yield* Effect.scoped(Effect.flatMap(openStore(dir), (store) => put(store, noise(1, 10))))
      for (const name of ["index.sqlite", "index.sqlite-wal"]) {
        rmSync(join(dir, name), { force: true })
      }
      const { detail } = yield* Effect.flip(openStore(dir))
      assert.match(detail, /index\.sqlite is missing, but there are blobs/)
      assert.equal(filesUnder(dir, "blobs").length, 1)
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
      assert.match(detail, /locked/)
      yield* Fiber.interrupt(upload)
      assert.equal((yield* put(store, noise(3, mib))).created, true)
    }).pipe(Effect.scoped),
  )
})

describe("a corrupt copy in a plain blob store", () => {
  const size = 2 * mib + 100
  const damages = [
    ["the first byte", 0],
    ["the middle", mib],
    ["the last byte", size - 1],
    ["the table of checksums", size + 40],
    ["the footer", size + 33 * 4 + 20],
  ] as const
  for (const [name, position] of damages) {
    it.effect(`is detected by a whole read, set aside and reported: ${name}`, () =>
      Effect.gen(function* () {
        const dir = yield* freshFolder
        const store = yield* openStore(dir)
        const { id } = yield* put(store, noise(1, size))
        flipBit(fileOf(dir, id), position)
        const bytes = noise(1, size)
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
        assert.equal(yield* tagOf(read), "BlobCorrupt")
        assert(offset <= position)
        assert.equal(yield* tagOf(store.get(id)), "BlobNotFound")
        assert.equal(yield* tagOf(store.stat(id)), "BlobNotFound")
        const { used_bytes, blob_count, quarantined } = yield* store.usage
        assert.deepEqual([used_bytes, blob_count, quarantined], [0, 0, 1])
        assert.equal(filesUnder(dir, "quarantine").length, 1)
        const [, fact] = yield* store.scan(0, 10)
        assert.equal(`${fact?.kind} ${fact?.id} ${fact?.size}`, `quarantined ${id} ${size}`)
        assert.equal((yield* put(store, noise(1, size))).created, true)
        assert(Buffer.from(yield* readAll(store, id)).equals(bytes))
      }).pipe(Effect.scoped),
    )
  }

  it.effect("is detected by a range that touches it, and not by one that does not", () =>
    Effect.gen(function* () {
      const dir = yield* freshFolder
      const store = yield* openStore(dir)
      const { id } = yield* put(store, noise(1, size))
      flipBit(fileOf(dir, id), mib + 5)
      yield* readAll(store, id, { offset: 0, length: 900 * kib })
      yield* readAll(store, id, { offset: mib + 64 * kib })
      // Another byte of the same 64 KiB chunk: the chunk is verified whole.
      const near = readAll(store, id, { offset: mib + 9, length: 1 })
      assert.equal(yield* tagOf(near), "BlobCorrupt")
      assert.equal(yield* tagOf(store.stat(id)), "BlobNotFound")
    }).pipe(Effect.scoped),
  )

  for (const small of [0, 1, 500]) {
    it.effect(`is detected before the first byte of a blob of ${small} bytes`, () =>
      Effect.gen(function* () {
        const dir = yield* freshFolder
        const store = yield* openStore(dir)
        const { id } = yield* put(store, noise(1, small))
        flipBit(fileOf(dir, id), small === 0 ? 30 : small - 1)
        assert.equal(yield* tagOf(store.get(id)), "BlobCorrupt")
        assert.equal(yield* tagOf(store.get(id)), "BlobNotFound")
      }).pipe(Effect.scoped),
    )
  }

  it.effect("is another blob's whole file in its place, and a chunk in another's place", () =>
    Effect.gen(function* () {
      const dir = yield* freshFolder
      const store = yield* openStore(dir)
      const [one, two] = yield* Effect.all([put(store, noise(1, 500)), put(store, noise(2, 500))])
      writeFileSync(fileOf(dir, one.id), readFileSync(fileOf(dir, two.id)))
      const part = store.get(one.id, { offset: 5, length: 5 })
      assert.equal(yield* tagOf(part), "BlobCorrupt")
      const bytes = noise(3, 3 * 64 * kib)
      const { id } = yield* put(store, bytes)
      const file = readFileSync(fileOf(dir, id))
      const [chunk, entry, size] = [64 * kib, 4, bytes.length]
      const swapped = Buffer.from(file)
      file.copy(swapped, 0, chunk, 2 * chunk)
      file.copy(swapped, chunk, 0, chunk)
      file.copy(swapped, size, size + entry, size + 2 * entry)
      file.copy(swapped, size + entry, size, size + entry)
      writeFileSync(fileOf(dir, id), swapped)
      const range = readAll(store, id, { offset: 0, length: chunk })
      assert.equal(yield* tagOf(range), "BlobCorrupt")
    }).pipe(Effect.scoped),
  )

  it.effect("is a whole blob whose checksums were made to fit its changed bytes", () =>
    Effect.gen(function* () {
      const dir = yield* freshFolder
      const store = yield* openStore(dir)
      for (const size of [500, 2 * mib]) {
        const { id } = yield* put(store, noise(1, size))
        const file = readFileSync(fileOf(dir, id))
        file[size - 1] = (file[size - 1] ?? 0) ^ 1
        tableOf(file.subarray(0, size), 0).copy(file, size)
        writeFileSync(fileOf(dir, id), file)
        assert.equal(yield* tagOf(readAll(store, id)), "BlobCorrupt")
      }
    }).pipe(Effect.scoped),
  )

  it.effect("whose file is gone is reported as lost when it is read", () =>
    Effect.gen(function* () {
      const dir = yield* freshFolder
      const store = yield* openStore(dir)
      const { id } = yield* put(store, noise(1, 10))
      rmSync(fileOf(dir, id))
      assert.equal(yield* tagOf(store.get(id)), "BlobCorrupt")
      assert.equal(yield* tagOf(store.get(id)), "BlobNotFound")
      assert.equal((yield* store.scan(1, 10))[0]?.kind, "lost")
      assert.equal((yield* put(store, noise(1, 10))).created, true)
    }).pipe(Effect.scoped),
  )
})

describe("the thread of a plain blob store", () => {
  it.live("fails what waits and what comes when it dies, and hangs nothing", () =>
    Effect.gen(function* () {
      const dir = yield* freshFolder
      const { store, worker } = yield* openBlobFiles({ dir, capacity_bytes })
      const { id } = yield* put(store, noise(1, 10))
      const half = Stream.concat(parts(noise(2, mib), 100 * kib), Stream.never)
      const idle = yield* Effect.forkChild(put(store, half))
      const waiting = yield* Effect.forkChild(
        Effect.all(
          Array.from({ length: 50 }, (_, seed) => Effect.result(put(store, noise(seed + 9, 10)))),
          { concurrency: "unbounded" },
        ),
      )
      yield* Effect.promise(() => worker.terminate())
      yield* Fiber.join(waiting)
      assert.equal(yield* tagOf(put(store, noise(3, 10))), "BlobStoreReadOnly")
      assert.equal(yield* tagOf(store.delete(id, put.origin)), "BlobStoreReadOnly")
      assert.equal(yield* tagOf(store.acknowledge(1)), "BlobStoreReadOnly")
      assert.equal(yield* tagOf(store.get(id)), "BlobStoreFailed")
      assert.equal(yield* tagOf(store.list({ limit: 1 })), "BlobStoreFailed")
      assert.equal((yield* store.usage).read_only, true)
      yield* Fiber.interrupt(idle)
    }).pipe(Effect.scoped, Effect.timeout("10 seconds")),
  )

  it.live("lets an upload that is under way end with its store", () =>
    Effect.gen(function* () {
      const dir = yield* freshFolder
      const scope = yield* Scope.make()
      const { store } = yield* openBlobFiles({ dir, capacity_bytes }).pipe(Scope.provide(scope))
      const half = Stream.concat(parts(noise(2, mib), 100 * kib), Stream.never)
      const upload = yield* Effect.forkChild(put(store, half))
      yield* put(store, noise(1, 10))
      yield* Scope.close(scope, Exit.void)
      assert.deepEqual(filesUnder(dir, "incoming"), [])
      yield* Fiber.interrupt(upload)
    }).pipe(Effect.scoped, Effect.timeout("10 seconds")),
  )
})

/** A file system of its own, 24 MiB; answers false where this user may not mount one. */
const smallDisk = (dir: string) =>
  Effect.acquireRelease(
    Effect.sync(
      () => spawnSync("mount", ["-t", "tmpfs", "-o", "size=24m", "tmpfs", dir]).status === 0,
    ),
    (mounted) => Effect.sync(() => mounted && spawnSync("umount", [dir])),
  )

describe("a plain blob store on a real disk that is full", () => {
  it.effect("refuses puts, keeps what it has, and lets deletes make room", (context) =>
    Effect.gen(function* () {
      const dir = yield* freshFolder
      if (!(yield* smallDisk(dir))) return context.skip("this user may not mount a tmpfs")
      const store = yield* openStore(join(dir, "store"))
      const stored: Array<{ readonly id: BlobId; readonly bytes: Uint8Array }> = []
      const fill = (size: number) =>
        Effect.gen(function* () {
          for (let seed = 0; ; seed++) {
            const bytes = noise(size + seed, size)
            const answer = yield* Effect.result(put(store, bytes))
            if (answer._tag === "Failure") return answer.failure._tag
            stored.push({ id: answer.success.id, bytes })
          }
        })
      for (const size of [mib, 50 * kib, 1]) {
        assert.equal(yield* fill(size), "BlobCapacityExceeded")
      }
      assert(stored.length > 10)
      assert.deepEqual(filesUnder(join(dir, "store"), "incoming"), [])
      for (const { id, bytes } of stored) {
        assert(Buffer.from(yield* readAll(store, id)).equals(bytes))
      }
      const { ids } = yield* store.list({ limit: 10_000 })
      assert.deepEqual(ids, stored.map(({ id }) => id).sort())
      for (const { id } of stored) yield* store.delete(id, put.origin)
      assert.equal((yield* store.usage).read_only, false)
      assert.equal((yield* put(store, noise(1, 5 * mib))).created, true)
    }).pipe(Effect.scoped),
  )
})
