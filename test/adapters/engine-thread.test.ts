/** The engine of a thread that answers requests, which reads by itself and has the rest done. */
import assert from "node:assert/strict"
import { join } from "node:path"
import { MessageChannel } from "node:worker_threads"
import { describe, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { vi } from "vitest"
import { BlobStore } from "#actors/blob-storage/blobs/store.ts"
import {
  type BlobVolumeOptions,
  openBlobVolume,
  storeOf,
} from "#adapters/blob-storage/blob-volume.ts"
import { answerEngineCalls } from "#adapters/blob-storage/engine/desk.ts"
import { type RemoteEngine, remoteEngine } from "#adapters/blob-storage/engine/remote.ts"
import { type ThreadEngine, threadEngine } from "#adapters/blob-storage/engine/thread.ts"
import type { VolumeEngine } from "#volume"
import { makeSharedReads, type SharedReads } from "#volume"
import { order } from "../../packages/volume/test/opened.ts"
import { type BlobStoreLimits, blobStoreContract } from "../contract/blob-store.ts"
import { noise } from "../contract/blob-store-bytes.ts"
import { concurrency, journal } from "../contract/blob-store-journal.ts"
import { capacity_bytes, freshFolder, segment_bytes } from "./blob-volume-folder.ts"

const kib = 1024
const mib = 1024 * kib
const at = 5000n

interface Threaded {
  readonly volume: VolumeEngine
  readonly remote: RemoteEngine
  readonly reads: SharedReads
  readonly engine: ThreadEngine
  readonly problems: ReadonlyArray<string>
  /** Ends what the thread has, as its death does. */
  readonly die: () => Promise<void>
}

/** A volume, and the engine of a thread: here in the same one, but all goes by messages. */
const threaded = (options: Omit<BlobVolumeOptions, "dir">) =>
  Effect.gen(function* () {
    const dir = join(yield* freshFolder, "store")
    const volume = yield* openBlobVolume({ dir, is_shared: true, ...options })
    const { sharing } = volume
    assert(sharing)
    const { port1, port2 } = new MessageChannel()
    const problems: Array<string> = []
    const closed = new Promise<void>((resolve) => port2.once("close", resolve))
    answerEngineCalls(
      { engine: volume, sharing, active_nodes: () => 3, report: (one) => void problems.push(one) },
      port2,
    )
    const remote = remoteEngine(port1)
    const watching = sharing.watch((news) => reads.hear(news))
    const reads = makeSharedReads(watching.volume, remote.pin)
    const die = async () => {
      port1.close()
      await closed
    }
    yield* Effect.addFinalizer(() =>
      Effect.promise(async () => {
        watching.end()
        reads.close()
        await die()
      }),
    )
    const threaded: Threaded = {
      volume,
      remote,
      reads,
      engine: threadEngine(remote, reads),
      problems,
      die,
    }
    return threaded
  })

const layerOf = (limits: BlobStoreLimits, engineOf: (threaded: Threaded) => ThreadEngine) =>
  Layer.effect(
    BlobStore,
    Effect.map(threaded({ segment_bytes, ...limits }), (made) =>
      storeOf({ ...made.volume, ...engineOf(made) }),
    ),
  )

blobStoreContract(
  "a blob store that a thread reads by itself",
  (limits) => layerOf(limits, ({ engine }) => engine),
  [concurrency, journal],
)

blobStoreContract(
  "a blob store that a thread has all read for it",
  (limits) =>
    layerOf(limits, ({ remote, engine }) => ({
      ...engine,
      get: remote.get,
      stat: remote.stat,
      getNow: () => undefined,
    })),
  [concurrency, journal],
)

const small = { capacity_bytes, segment_bytes }

const bytesOf = async (
  { get }: Pick<ThreadEngine, "get">,
  id: Parameters<ThreadEngine["get"]>[0],
) => {
  const { data, windows } = await get(id, {}, at)
  return data ?? Buffer.concat(await Array.fromAsync(windows()))
}

describe("a thread's engine", () => {
  it.effect("has a large blob read on where it cannot itself any more", () =>
    Effect.gen(function* () {
      const { volume, remote, reads } = yield* threaded(small)
      const body = noise(1, 5 * mib)
      const { id } = yield* Effect.promise(() => volume.put(order, [body], 1000n))
      const breaking: SharedReads = {
        ...reads,
        get: async (...asked) => {
          const reading = await reads.get(...asked)
          return {
            ...reading,
            data: undefined,
            windows: async function* () {
              let left = 2
              for await (const window of reading.windows()) {
                if (left === 0) throw new Error("the file is another by now")
                left -= 1
                yield window
              }
            },
          }
        },
      }
      const engine = threadEngine(remote, breaking)
      assert(Buffer.from(yield* Effect.promise(() => bytesOf(engine, id))).equals(body))
      const range = { offset: 17, length: 3 * mib }
      const { windows } = yield* Effect.promise(() => engine.get(id, range, at))
      const part = Buffer.concat(yield* Effect.promise(() => Array.fromAsync(windows())))
      assert(part.equals(body.subarray(17, 17 + 3 * mib)))
    }).pipe(Effect.scoped),
  )

  it.effect("gives windows again, and again, to whoever asks for them late", () =>
    Effect.gen(function* () {
      const { volume, remote } = yield* threaded(small)
      const body = noise(2, 4 * mib)
      const { id } = yield* Effect.promise(() => volume.put(order, [body], 1000n))
      const reading = yield* Effect.promise(() => remote.get(id, {}, at))
      // By now nobody was there to take them, and they were closed.
      yield* Effect.promise(() => new Promise((resolve) => setTimeout(resolve, 5)))
      for (let time = 0; time < 2; time++) {
        const all = yield* Effect.promise(() => Array.fromAsync(reading.windows()))
        assert(Buffer.concat(all).equals(body))
      }
    }).pipe(Effect.scoped),
  )

  it.effect("holds an upload back while more of it is under way than a few MiB", () =>
    Effect.gen(function* () {
      const { remote } = yield* threaded(small)
      const upload = remote.upload(order, 8 * mib)
      assert.equal(upload.write(noise(3, mib)), undefined)
      const waiting = upload.write(noise(4, mib))
      assert(waiting instanceof Promise)
      yield* Effect.promise(() => waiting)
      yield* Effect.promise(() => upload.abort())
    }).pipe(Effect.scoped),
  )

  it.effect("leaves nothing when it dies: no upload's room, no pin, no reading", () =>
    Effect.gen(function* () {
      const { volume, engine, remote, problems, die } = yield* threaded({
        segment_bytes,
        capacity_bytes: 9 * mib,
      })
      const body = noise(4, 4 * mib)
      const { id } = yield* Effect.promise(() => volume.put(order, [body], 1000n))
      const { windows } = yield* Effect.promise(() => engine.get(id, {}, at))
      yield* Effect.promise(() => windows().next())
      const upload = engine.upload(order, 4 * mib)
      yield* Effect.promise(async () => upload.write(noise(5, mib)))
      // It is answered in the order of what was asked.
      yield* Effect.promise(remote.activeNodes)
      const full = yield* Effect.promise(() =>
        volume.put(order, [noise(6, 4 * mib)], 1001n).then(
          () => "stored",
          () => "full",
        ),
      )
      assert.equal(full, "full")
      yield* Effect.promise(die)
      // What was under way of it ends by itself.
      yield* Effect.promise(() =>
        vi.waitFor(() => volume.put(order, [noise(6, 4 * mib)], 1002n), 10_000),
      )
      assert.deepEqual(problems, [])
    }).pipe(Effect.scoped),
  )

  it.effect("is told how many nodes are active", () =>
    Effect.gen(function* () {
      const { remote } = yield* threaded(small)
      assert.equal(yield* Effect.promise(remote.activeNodes), 3)
    }).pipe(Effect.scoped),
  )
})
