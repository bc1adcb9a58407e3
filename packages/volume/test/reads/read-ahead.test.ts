/** Blobs that are read ahead: no byte before the hash, and no more than memory allows. */
import assert from "node:assert/strict"
import { Blake3Hasher } from "@napi-rs/blake-hash"
import { describe, it } from "vitest"
import type { BlobId } from "#schemas/blob-storage/blob.ts"
import { decodeHead, encodeHead } from "../../log/record.ts"
import { window_bytes } from "../../reads/chunks.ts"
import { makeReadAhead } from "../../reads/read-ahead.ts"
import type { BlobSpan } from "../../reads/windows.ts"
import { mib, order } from "../volume-folder.ts"

const none = new Uint8Array(0)

const headOf = (size: number, hash: string) => {
  const bytes = Buffer.alloc(4096)
  const record = {
    kind: "blob",
    is_moved: false,
    is_large: true,
    // 32 hex characters.
    id: hash.slice(0, 32) as BlobId,
    hash,
    shard: undefined,
    since: 0n,
    cluster_at: 0n,
    put_at: 0n,
    policy: "REPLICATION_POLICY_NONE",
    size,
    at: 1n,
    cursor: 1,
    origin: order.origin,
    labels: {},
    payload_bytes: 0,
    crcs: [],
    extents: [{ file: 1, position: 4096, bytes: size, table_crc: 1 }],
    freed: [],
  } as const
  const length = encodeHead(bytes, 0, record, 7)
  return decodeHead(bytes.subarray(0, length), 0, 7) ?? assert.fail("no head")
}

/** A blob with windows of one byte each, and those that were read. */
const blobOf = (size: number, wrong?: number) => {
  const read: Array<number> = []
  const bytesOf = ({ start, end }: BlobSpan) =>
    new Uint8Array(end - start).fill(Math.floor(start / window_bytes))
  const hasher = new Blake3Hasher()
  for (let start = 0; start < size; start += window_bytes) {
    hasher.update(bytesOf({ start, end: Math.min(start + window_bytes, size) }))
  }
  const head = headOf(size, hasher.digest("hex"))
  const readUnverified = async (window: BlobSpan) => {
    const number = Math.floor(window.start / window_bytes)
    read.push(number)
    const bytes = bytesOf(window)
    if (number === wrong) bytes[0] = 0xff
    return bytes
  }
  return { head, readUnverified, read, first: bytesOf({ start: 0, end: window_bytes }) }
}

/** Whether any window is returned. Windows are too long to print. */
const isHandedOn = async (windows: AsyncGenerator<Uint8Array, boolean>) => {
  const { value, done } = await windows.next()
  return done ? value : true
}

describe("a blob that is read ahead", () => {
  it("is read whole before any of it is returned, in order", async () => {
    const blob = blobOf(5 * mib)
    const windows = makeReadAhead()(blob, none)
    const { value } = await windows.next()
    assert.deepEqual(blob.read, [0, 1, 2, 3, 4, 5])
    assert(value instanceof Uint8Array && value.length === window_bytes && value[0] === 0)
    for (let number = 1; number <= 5; number++) {
      const { value: next } = await windows.next()
      assert(next instanceof Uint8Array && next[0] === number)
    }
    assert.deepEqual(await windows.next(), { value: true, done: true })
  })

  it("is not read again if its first window was already read", async () => {
    const blob = blobOf(2 * mib)
    const windows = makeReadAhead()(blob, blob.first)
    assert((await windows.next()).value === blob.first)
    assert.deepEqual(blob.read, [1, 2])
  })

  for (const wrong of [0, 2, 5]) {
    it(`is not returned if window ${wrong} is wrong`, async () => {
      assert.equal(await isHandedOn(makeReadAhead()(blobOf(5 * mib, wrong), none)), false)
    })
  }

  it("has at most 16 MiB", async () => {
    const ahead = makeReadAhead()
    const larger = blobOf(16 * mib + 1)
    assert.equal(await isHandedOn(ahead(larger, none)), false)
    assert.deepEqual(larger.read, [])
    assert.equal(await isHandedOn(ahead(blobOf(16 * mib), none)), true)
  })

  it("does not wait: with 64 MiB in memory it is verified by its checksums", async () => {
    const ahead = makeReadAhead()
    const blob = blobOf(16 * mib)
    const isRead = async () => {
      const windows = ahead(blob, none)
      return { windows, is_read: await isHandedOn(windows) }
    }
    const held = [await isRead(), await isRead(), await isRead(), await isRead()]
    assert(held.every(({ is_read }) => is_read))
    assert.equal((await isRead()).is_read, false)
    // One whose reader left, and one that was read to its end.
    await held[0]?.windows.return(true)
    const again = await isRead()
    assert.equal(again.is_read, true)
    assert.equal((await isRead()).is_read, false)
    for (let is_done = false; !is_done; ) is_done = (await again.windows.next()).done === true
    assert.equal((await isRead()).is_read, true)
  })

  it("releases its memory if it cannot be read", async () => {
    const ahead = makeReadAhead()
    const broken = { ...blobOf(16 * mib), readUnverified: () => Promise.reject(new Error("EIO")) }
    for (let time = 1; time <= 5; time++) {
      await assert.rejects(ahead(broken, none).next(), /EIO/)
    }
  })
})
