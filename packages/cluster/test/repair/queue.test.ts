/** The queue of hints, and the rate limit of the repair. */
import assert from "node:assert/strict"
import { describe, it } from "vitest"
import type { BlobId } from "#schemas/blob-storage/blob.ts"
import { makeRepairQueue } from "../../repair/queue.ts"
import { makePace, paced } from "../../repair/rate.ts"
import { makeWorld } from "../simulation/world.ts"

// The format of the ids does not matter here.
const id = (n: number) => `${n}` as BlobId
const second_ns = 1_000_000_000n

describe("the queue of hints", () => {
  it("contains each blob once, in order of arrival", () => {
    const queue = makeRepairQueue()
    for (const n of [1, 2, 1, 3]) queue.add(id(n))
    assert.equal(queue.size(), 3)
    assert.deepEqual(queue.take(0n, 2), [id(1), id(2)])
    assert.deepEqual(queue.take(0n, 2), [id(3)])
    assert.deepEqual(queue.take(0n, 2), [])
  })
  it("has a maximum length, and reports once that ids were dropped", () => {
    const queue = makeRepairQueue(2)
    for (const n of [1, 2]) queue.add(id(n))
    assert.equal(queue.hasLost(), false)
    queue.add(id(3))
    assert.equal(queue.size(), 2)
    assert.equal(queue.hasLost(), true)
    assert.equal(queue.hasLost(), false)
  })
  it("retries failed repairs with exponential backoff, and then stops", () => {
    const queue = makeRepairQueue()
    queue.add(id(1))
    let now = 0n
    const pauses: Array<number> = []
    assert.deepEqual(queue.take(now, 1), [id(1)])
    queue.postpone(id(1), now)
    for (let waited = 0; queue.size() > 0; waited++) {
      now += second_ns
      if (queue.take(now, 1).length === 0) continue
      pauses.push(waited + 1)
      waited = -1
      queue.postpone(id(1), now)
    }
    assert.deepEqual(pauses, [1, 2, 4, 8, 16, 32])
    assert.equal(queue.hasLost(), true)
  })
  it("resets the attempts of a blob once it is repaired", () => {
    const queue = makeRepairQueue()
    queue.add(id(1))
    queue.take(0n, 1)
    queue.postpone(id(1), 0n)
    queue.take(second_ns, 1)
    queue.settle(id(1))
    queue.add(id(1))
    queue.take(second_ns, 1)
    queue.postpone(id(1), second_ns)
    assert.deepEqual(queue.take(2n * second_ns, 1), [id(1)])
  })
  it("accepts a new hint while the blob is being repaired", () => {
    const queue = makeRepairQueue()
    queue.add(id(1))
    queue.take(0n, 1)
    queue.add(id(1))
    queue.postpone(id(1), 0n)
    assert.deepEqual(queue.take(0n, 5), [id(1)])
    assert.equal(queue.size(), 0)
  })
})

describe("the rate limit", () => {
  const mebibyte = 2 ** 20
  /** The duration of this many pieces at 50 MiB/s, in milliseconds. */
  const duration = async (pieces: number, bytes: number, at_once: number) => {
    const world = makeWorld(1)
    const pace = makePace(50 * mebibyte, { now: world.now, after: world.after })
    let left = pieces
    const worker = async () => {
      while (left-- > 0) await pace(bytes)
    }
    await world.until(Promise.all(Array.from({ length: at_once }, worker)))
    return world.ms()
  }
  it("is exact within one per cent for pieces of any size", async () => {
    for (const [pieces, bytes, at_once] of [
      [1000, mebibyte, 1],
      [1000, mebibyte, 16],
      [250_000, 4096, 16],
      [20, 50 * mebibyte, 3],
    ] as const) {
      const wanted_ms = ((pieces * bytes) / (50 * mebibyte)) * 1000
      const ms = await duration(pieces, bytes, at_once)
      assert.ok(Math.abs(ms / wanted_ms - 1) < 0.01, `${ms} ms for ${wanted_ms}`)
    }
  })
  it("gives no credit for pauses", async () => {
    const world = makeWorld(1)
    const pace = makePace(100, { now: world.now, after: world.after })
    await world.until(world.pause(60_000))
    const started_ms = world.ms()
    await world.until(
      (async () => {
        for (let n = 0; n < 10; n++) await pace(100)
      })(),
    )
    assert.ok(world.ms() - started_ms >= 9900, `${world.ms() - started_ms}`)
  })
  it("tolerates a clock that is set back", async () => {
    const world = makeWorld(1)
    let back = 0n
    const pace = makePace(100, { now: () => world.now() - back, after: world.after })
    await world.until(Promise.resolve(pace(100)))
    back = 3600n * second_ns
    const started_ms = world.ms()
    await world.until(Promise.resolve(pace(100)))
    assert.ok(world.ms() - started_ms <= 2000)
  })
  it("ends its source when its reader ends", async () => {
    let is_ended = false
    const source = async function* () {
      try {
        for (;;) yield new Uint8Array(10)
      } finally {
        is_ended = true
      }
    }
    const bytes = paced(source(), () => undefined)
    await bytes.next()
    await bytes.return(undefined)
    assert.equal(is_ended, true)
  })
})
