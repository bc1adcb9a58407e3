/** Contract of every BlobEngine adapter. Properties print their seed on failure. */
import assert from "node:assert/strict"
import { describe, it } from "@effect/vitest"
import { blake3 } from "@napi-rs/blake-hash"
import { Effect, type Scope, Struct } from "effect"
import fc from "fast-check"
import type { BlobEngine, BlobFact } from "#actors/blob-storage/ports/engine.ts"
import { type BlobId, get_chunk_bytes_max } from "#schemas/blob-storage/blob.ts"
import { bytesOf, noise, parts, plain, put, readAll } from "./engine-bytes.ts"
import { tagIn } from "./node-engine-copies.ts"

export interface BlobEngineLimits {
  readonly capacity_bytes: number
  readonly size_max_bytes?: number
}
type Open = (limits: BlobEngineLimits) => Effect.Effect<BlobEngine, unknown, Scope.Scope>
type Promised = (
  sentence: string,
  body: (engine: BlobEngine) => Promise<void>,
  limits?: BlobEngineLimits,
) => void

const roomy: BlobEngineLimits = { capacity_bytes: 1024 ** 3 }
const kib = 1024
const mib = 1024 * kib

const kinds = (facts: ReadonlyArray<BlobFact>) => facts.map(({ kind, id }) => `${kind} ${id}`)

const assertEmpty = async (engine: BlobEngine) => {
  const { payload_bytes, blob_count, read_only } = await engine.usage()
  assert.deepEqual({ payload_bytes, blob_count, read_only }, plain)
  assert.deepEqual(await engine.list("", "", 10), { ids: [], has_more: false })
  assert.deepEqual(await engine.scan(0, 10), [])
}

const identity = (promised: Promised) => {
  promised("a blob's ID is the first half of its BLAKE3-256", async (engine) => {
    const { id, meta } = await put(engine, new TextEncoder().encode("abc"))
    assert.equal(id, "6437b3ac38465133ffb63b75273a8db5")
    const checksum = Buffer.from(meta.checksum, "base64").toString("hex")
    assert.equal(checksum, "6437b3ac38465133ffb63b75273a8db548c558465d79db03fd359c6cd5bd9d85")
    const empty = await put(engine, new Uint8Array(0))
    assert.equal(empty.id, "af1349b9f5f9a1a6a0404dea36dcc949")
  })
  const sizes = [0, 1, 64 * kib - 1, 64 * kib, 64 * kib + 1, 256 * kib, 256 * kib + 1]
  const larger = [get_chunk_bytes_max, get_chunk_bytes_max + 1, 3 * mib, 5 * mib + 17]
  for (const size of [...sizes, ...larger]) {
    promised(`a blob of ${size} bytes comes back as it was`, async (engine) => {
      const bytes = noise(size, size)
      for (const given of [bytes, parts(bytes, mib)]) {
        const stored = await put(engine, given)
        assert.equal(stored.meta.size, BigInt(size))
        assert.equal(stored.created, true)
        const opened = await engine.get(stored.id, {}, 2000n)
        assert.deepEqual(opened.meta, stored.meta)
        assert.equal(opened.data !== undefined, size <= get_chunk_bytes_max)
        if (opened.data) assert(Buffer.from(opened.data).equals(bytes))
        const windows: Array<Uint8Array> = []
        for await (const window of opened.windows()) windows.push(window)
        assert(windows.every(({ length }) => length > 0 && length <= get_chunk_bytes_max))
        assert(Buffer.concat(windows).equals(bytes))
        assert((await bytesOf(opened)).equals(bytes), "it can be read once more")
        assert.deepEqual(await engine.stat(stored.id), stored.meta)
        await engine.delete(stored.id, put.origin, 1000n)
      }
    })
  }
  promised("how the bytes are cut into parts makes no difference", async (engine) => {
    const bytes = noise(7, 700 * kib)
    const expected = blake3(bytes).toString("hex").slice(0, 32)
    for (const cut of [1000, 64 * kib + 3, 300 * kib, 2 * mib]) {
      const { id } = await put(engine, parts(bytes, cut))
      assert.equal(id, expected)
      assert((await readAll(engine, id)).equals(bytes))
      await engine.delete(id, put.origin, 1000n)
    }
  })
}

const repetition = (promised: Promised) => {
  promised("the same content again changes nothing", async (engine) => {
    for (const size of [10, 400 * kib]) {
      const bytes = noise(1, size)
      const first = await put(engine, bytes, { labels: { a: "1" } })
      const again = await put(engine, bytes, { labels: { b: "2" }, at: 2_000_000_000n })
      assert.deepEqual(again, { ...Struct.omit(first, ["cursor"]), created: false })
    }
    assert.equal((await engine.scan(0, 10)).length, 2)
    assert.equal((await engine.usage()).blob_count, 2)
  })
  promised("an unspecified policy is stored as REPLICA3 and agrees with any", async (engine) => {
    const first = await put(engine, noise(1, 10))
    assert.equal(first.meta.policy, "REPLICATION_POLICY_REPLICA3")
    const same = await put(engine, noise(1, 10), { policy: "REPLICATION_POLICY_REPLICA3" })
    assert.equal(same.created, false)
    await put(engine, noise(2, 10), { policy: "REPLICATION_POLICY_NONE" })
    const { meta, created } = await put(engine, noise(2, 10))
    assert.equal(created, false)
    assert.equal(meta.policy, "REPLICATION_POLICY_NONE")
  })
  promised("another explicit policy for the same content is refused", async (engine) => {
    for (const size of [10, 400 * kib]) {
      const { meta, id } = await put(engine, noise(1, size))
      const other = () => put(engine, noise(1, size), { policy: "REPLICATION_POLICY_REPLICA2" })
      assert.equal(await tagIn(other), "BlobAlreadyExists")
      assert.deepEqual(await engine.stat(id), meta)
    }
  })
  promised("if_none_match refuses what is stored and takes what is not", async (engine) => {
    const fresh = await put(engine, noise(1, 10), { if_none_match: true })
    assert.equal(fresh.created, true)
    const again = () => put(engine, noise(1, 10), { if_none_match: true })
    assert.equal(await tagIn(again), "BlobAlreadyExists")
  })
  promised("an expected ID must be the content's, stored already or not", async (engine) => {
    const other = "00000000000000000000000000000000" as BlobId
    for (const size of [10, 400 * kib]) {
      const wrong = () => put(engine, noise(1, size), { expected_id: other })
      assert.equal(await tagIn(wrong), "BlobIdMismatch")
    }
    await assertEmpty(engine)
    const { id } = await put(engine, noise(1, 10))
    const same = await put(engine, noise(1, 10), { expected_id: id })
    assert.equal(same.created, false)
    const wrong = () => put(engine, noise(1, 10), { expected_id: other })
    assert.equal(await tagIn(wrong), "BlobIdMismatch")
  })
}

const refusals = (promised: Promised) => {
  for (const size of [10, 900 * kib]) {
    promised(`an upload whose bytes fail after ${size} bytes leaves nothing`, async (engine) => {
      const torn = function* () {
        yield* parts(noise(1, size), 100 * kib)
        throw new Error("torn")
      }
      await assert.rejects(put(engine, torn()), /torn/)
      await assertEmpty(engine)
    })
    promised(
      `an upload aborted after ${size} bytes was invisible and leaves nothing`,
      async (engine) => {
        const bytes = noise(1, size)
        const upload = engine.upload(put.order, undefined)
        for (const part of parts(bytes, 100 * kib)) await upload.write(part)
        await assertEmpty(engine)
        await upload.abort()
        await assertEmpty(engine)
        assert.equal((await put(engine, bytes)).created, true)
      },
    )
  }
}

const limits = (promised: Promised) => {
  const small = { capacity_bytes: 10 * mib, size_max_bytes: 500 * kib }
  promised(
    "a blob over the size limit is refused, one at the limit is not",
    async (engine) => {
      const over = noise(1, 500 * kib + 1)
      assert.equal(await tagIn(() => put(engine, over)), "BlobTooLarge")
      assert.equal(await tagIn(() => put(engine, parts(over, 10 * kib))), "BlobTooLarge")
      await assertEmpty(engine)
      assert.equal((await put(engine, noise(1, 500 * kib))).meta.size, BigInt(500 * kib))
    },
    small,
  )
  promised(
    "a small blob over a small limit is refused",
    async (engine) => {
      assert.equal(await tagIn(() => put(engine, noise(1, 101))), "BlobTooLarge")
      assert.equal((await put(engine, noise(1, 100))).created, true)
    },
    { capacity_bytes: 1000, size_max_bytes: 100 },
  )
  promised(
    "a put beyond the capacity is refused whole, and a delete makes room",
    async (engine) => {
      const { id } = await put(engine, noise(1, 600 * kib))
      const before = await engine.usage()
      assert.equal(before.payload_bytes, 600 * kib)
      for (const size of [448 * kib, 3 * mib]) {
        const beyond = () => put(engine, parts(noise(2, size), 50 * kib))
        assert.equal(await tagIn(beyond), "BlobCapacityExceeded")
      }
      assert.deepEqual(await engine.usage(), before)
      assert.equal((await put(engine, noise(3, 424 * kib))).created, true)
      assert.equal(await tagIn(() => put(engine, noise(4, 20 * kib))), "BlobCapacityExceeded")
      await engine.delete(id, put.origin, 1000n)
      assert.equal((await put(engine, noise(5, 600 * kib))).created, true)
      assert.equal((await engine.usage()).payload_bytes, mib)
    },
    // Room for a store's overhead in addition to the bytes.
    { capacity_bytes: mib + 16 * kib },
  )
}

const deletion = (promised: Promised) => {
  promised("what is not there is not found, by get and by stat", async (engine) => {
    const id = "0123456789abcdef0123456789abcdef" as BlobId
    assert.equal(await tagIn(() => engine.get(id, {}, 2000n)), "BlobNotFound")
    assert.equal(await tagIn(() => engine.stat(id)), "BlobNotFound")
  })
  promised(
    "a delete succeeds each time, and is a fact only where there was a blob",
    async (engine) => {
      const { id, meta } = await put(engine, noise(1, 10))
      assert.equal(await engine.tombstone(id), undefined)
      await engine.delete(id, put.origin, 1000n)
      assert.equal(await tagIn(() => engine.get(id, {}, 2000n)), "BlobNotFound")
      const buried = await engine.tombstone(id)
      assert(buried !== undefined && buried > meta.created_at)
      await engine.delete(id, put.origin, 1000n)
      const facts = await engine.scan(0, 10)
      assert.deepEqual(kinds(facts), [`stored ${id}`, `deleted ${id}`])
      assert.equal(facts[1]?.size, 10)
      const never = "0123456789abcdef0123456789abcdef" as BlobId
      await engine.delete(never, put.origin, 1000n)
      assert((await engine.tombstone(never)) !== undefined)
      assert.equal((await engine.scan(0, 10)).length, 2)
    },
  )
  promised(
    "a put after a delete stores the blob again and removes the tombstone",
    async (engine) => {
      const first = await put(engine, noise(1, 10), { labels: { old: "1" } })
      await engine.delete(first.id, put.origin, 1000n)
      const second = await put(engine, noise(1, 10), { labels: { new: "2" } })
      assert.equal(second.created, true)
      assert.deepEqual(second.meta.labels, { new: "2" })
      assert(second.meta.created_at > first.meta.created_at)
      assert.equal(await engine.tombstone(first.id), undefined)
      assert.equal((await engine.usage()).blob_count, 1)
    },
  )
}

const time = (promised: Promised) => {
  promised("created_at is the given time, and no two puts share one", async (engine) => {
    const at = 1_700_000_000_000_000_000n
    const first = await put(engine, noise(1, 10), { at })
    assert.equal(first.meta.created_at, at)
    assert.equal(first.meta.modified_at, first.meta.created_at)
    const rest = await Promise.all(
      Array.from({ length: 20 }, (_, seed) => put(engine, noise(seed + 2, 10), { at })),
    )
    const times = new Set(rest.map(({ meta }) => meta.created_at))
    assert.equal(times.size, 20)
    assert(rest.every(({ meta }) => meta.created_at > first.meta.created_at))
  })
}

const ranges = (promised: Promised) => {
  promised("a range is the same stretch of the whole, across every border", async (engine) => {
    const bytes = noise(1, 2 * mib + 12345)
    const { id } = await put(engine, bytes)
    const borders = [0, 1, 64 * kib, get_chunk_bytes_max, 2 * mib, bytes.length]
    const near = fc
      .tuple(fc.constantFrom(...borders), fc.integer({ min: -2, max: 2 }))
      .map(([border, by]) => Math.max(0, border + by))
    const place = fc.oneof(near, fc.nat(bytes.length + 10))
    const isStretch = async (offset: number, length: number | undefined) => {
      const range = { offset, ...(length === undefined ? {} : { length }) }
      const read = await readAll(engine, id, range)
      const end = length === undefined ? bytes.length : offset + length
      assert(read.equals(bytes.subarray(offset, end)))
    }
    const property = fc.asyncProperty(place, fc.option(place, { nil: undefined }), isStretch)
    await fc.assert(property, { numRuns: 60 })
  })
}

const lists = (promised: Promised) => {
  promised("a list pages through the IDs in byte order, as a naive list does", async (engine) => {
    const stored = await Promise.all(
      Array.from({ length: 150 }, (_, seed) => put(engine, noise(seed, 20))),
    )
    const ids = stored.map(({ id }) => id).sort()
    const prefix = fc
      .tuple(fc.constantFrom(...ids), fc.integer({ min: 0, max: 3 }))
      .map(([id, length]) => id.slice(0, length))
    const agrees = async (limit: number, begins: string) => {
      const expected = ids.filter((id) => id.startsWith(begins))
      const found: Array<BlobId> = []
      for (let more = true; more; ) {
        const page = await engine.list(found.at(-1) ?? "", begins, limit)
        assert(page.ids.length <= limit)
        found.push(...page.ids)
        assert.equal(page.has_more, found.length < expected.length)
        more = page.has_more
      }
      assert.deepEqual(found, expected)
    }
    const property = fc.asyncProperty(fc.integer({ min: 1, max: 200 }), prefix, agrees)
    await fc.assert(property, { numRuns: 40 })
    const after_id = "80000000000000000000000000000000" as BlobId
    const rest = await engine.list(after_id, "", 200)
    assert.deepEqual(
      rest.ids,
      ids.filter((id) => id > after_id),
    )
  })
}

/** Declares the contract's tests for the engines that `open` creates, each empty at first. */
export const blobEngineContract = (
  name: string,
  open: Open,
  more: ReadonlyArray<(promised: Promised) => void> = [],
) => {
  const promised: Promised = (sentence, body, given = roomy) =>
    it.effect(sentence, () =>
      Effect.flatMap(open(given), (engine) => Effect.promise(() => body(engine))),
    )
  describe(name, () => {
    const parts_of_contract = [
      identity,
      repetition,
      refusals,
      limits,
      deletion,
      time,
      ranges,
      lists,
    ]
    for (const part of [...parts_of_contract, ...more]) part(promised)
  })
}
export type { Promised }
