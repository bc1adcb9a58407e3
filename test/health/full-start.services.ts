/**
 * A full disk that holds the whole data folder: the server starts on it, reads and deletes work,
 * `almanac blobs compact` frees space, and puts work again.
 */
import assert from "node:assert/strict"
import { existsSync, rmSync } from "node:fs"
import { join } from "node:path"
import { afterAll, it } from "vitest"
import { reserve_file } from "#adapters/data-folder/reserve.ts"
import type { BlobId } from "#schemas/blob-storage/blob.ts"
import { noise } from "../contract/blob-storage/engine-bytes.ts"
import { idOf } from "../contract/blob-storage/node-engine-copies.ts"
import { describeWithSmallDisk, fillDisk, freeBytes } from "../world/programs/small-disk.ts"
import {
  cleanUp,
  outputOf,
  runVerb,
  type Server,
  startServer,
  until,
} from "../world/server/server.ts"

const mib = 1024 * 1024
const disk_bytes = 320 * mib
const floor_bytes = 64 * mib
const blob_bytes = 512 * 1024
const small_bytes = 20_000
const ready_ms_max = 60_000
const minutes_ms = 300_000
const settings = {
  ALMANAC_BLOB__SEGMENT_BYTES: String(8 * mib),
  ALMANAC_BLOB__FREE_FLOOR_BYTES: String(floor_bytes),
}

afterAll(cleanUp)

const client = ({ url, credentials }: Server) => {
  const headers = {
    authorization: `Bearer ${credentials.blob.token}`,
    "content-type": "application/octet-stream",
  }
  const blob = (id: string) => `${url}/v1/blobs/${id}`
  return {
    put: async (bytes: Uint8Array<ArrayBuffer>) => {
      const path = `${url}/v1/blobs/stream?policy=REPLICATION_POLICY_NONE`
      const answer = await fetch(path, { method: "POST", headers, body: bytes })
      return { status: answer.status, text: await answer.text() }
    },
    get: async (id: string) => {
      const answer = await fetch(blob(id), {
        headers: { ...headers, accept: "application/octet-stream" },
      })
      return { status: answer.status, bytes: Buffer.from(await answer.arrayBuffer()) }
    },
    remove: async (id: string) => (await fetch(blob(id), { method: "DELETE", headers })).status,
  }
}

const bytesOf = (seed: number) =>
  new Uint8Array(noise(seed, seed % 3 === 0 ? small_bytes : blob_bytes))

/** Puts blobs until the disk is full; returns the stored ones by seed. */
const fillWithBlobs = async (server: Server, first: number) => {
  const { put } = client(server)
  const stored = new Map<number, BlobId>()
  for (let seed = first; ; seed++) {
    const { status, text } = await put(bytesOf(seed))
    if (status === 200) stored.set(seed, idOf(bytesOf(seed)))
    else {
      assert.equal(status, 429, text)
      assert.match(text, /blob\.free_floor_bytes.*almanac blobs compact/)
      return stored
    }
  }
}

const survives = async (dir: string) => {
  const data_dir = join(dir, "data")
  const first = await startServer(data_dir, settings)
  await until("space kept for a start", ready_ms_max, () =>
    existsSync(join(data_dir, reserve_file)),
  )
  const stored = await fillWithBlobs(first, 0)
  assert(freeBytes(dir) >= floor_bytes - 8 * mib, `${freeBytes(dir)} bytes are free`)
  await first.stop()
  const foreign = fillDisk(dir)
  assert.equal(freeBytes(dir), 0)

  const server = await startServer(data_dir, settings)
  const { put, get, remove } = client(server)
  const entries = [...stored]
  for (const [seed, id] of entries.slice(0, 20)) {
    const { status, bytes } = await get(id)
    assert.equal(status, 200, outputOf(server))
    assert(bytes.equals(bytesOf(seed)))
  }
  assert.equal((await put(bytesOf(-1))).status, 429)
  for (const [seed, id] of entries.filter((_, n) => n % 4 !== 0)) {
    assert.equal(await remove(id), 200, outputOf(server))
    stored.delete(seed)
  }
  const compacted = await runVerb(data_dir, ["blobs", "compact"], settings)
  assert.match(compacted.stdout, /^freed [\d,]+ bytes; the volume uses /, compacted.stderr)
  const given = Number(/^freed ([\d,]+)/.exec(compacted.stdout)?.[1]?.replaceAll(",", ""))
  assert(given > 60 * mib, `${compacted.stdout}${compacted.stderr}${outputOf(server)}`)
  await until(`ready again:\n${outputOf(server)}`, ready_ms_max, async () => {
    return (await fetch(`${server.url}/readyz`)).status === 200
  })
  for (const file of foreign) rmSync(file, { force: true })
  const reserve = join(data_dir, reserve_file)
  await until("space for the next start", 2 * ready_ms_max, () => existsSync(reserve))
  await until("a put", ready_ms_max, async () => (await put(bytesOf(-2))).status === 200)
  for (const [seed, id] of stored) assert((await get(id)).bytes.equals(bytesOf(seed)))
  assert.deepEqual(await server.stop(), { code: 0, signal: null })
  // Once more, but without a server: the command itself opens the data folder.
  const again = fillDisk(dir)
  assert.equal(freeBytes(dir), 0)
  const alone = await runVerb(data_dir, ["blobs", "compact"], settings)
  assert.match(alone.stdout, /^freed /, alone.stderr)
  for (const file of again) rmSync(file, { force: true })
  const verified = await runVerb(data_dir, ["audit", "verify"], settings)
  assert.equal(verified.code, 0, verified.stdout)
}

describeWithSmallDisk("a server whose whole data folder is on a full disk", disk_bytes, (disk) => {
  it("starts, reads, deletes, gives space back and stores again", () => survives(disk), minutes_ms)
})
