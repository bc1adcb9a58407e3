import assert from "node:assert/strict"
import { spawnSync } from "node:child_process"
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, describe, it } from "vitest"
import { migrationState } from "#adapters/blob-storage/plain/migration.ts"
import { openPlain } from "#adapters/blob-storage/plain/plain.ts"
import type { BlobId } from "#schemas/blob-storage/blob.ts"
import { openVolume, type VolumeEngine } from "#volume"
import { noise } from "../contract/blob-store-bytes.ts"
import { idOf, plainStore } from "./plain-store.ts"

const kib = 1024
const timeout_ms = 120_000

const folders: Array<string> = []
const freshFolder = () => {
  const dir = mkdtempSync(join(tmpdir(), "almanac-migration-"))
  folders.push(dir)
  return dir
}
afterAll(() => {
  for (const dir of folders) rmSync(dir, { recursive: true, force: true })
})

const sizes = [0, 1, 5000, 64 * kib, 256 * kib, 256 * kib + 1, 1500 * kib]

/** A store with all that one may hold; what is expected of its migration. */
const makeStore = (dir: string) => {
  const store = plainStore(dir)
  const blobs = new Map<BlobId, Uint8Array>()
  const keep = (seed: number, size: number) => {
    const bytes = noise(seed, size)
    blobs.set(store.put(bytes, { seed: `${seed}` }, "REPLICATION_POLICY_NONE"), bytes)
  }
  for (const [seed, size] of sizes.entries()) keep(seed, size)
  for (let seed = 100; seed < 140; seed++) keep(seed, 100 + seed)
  const tombstones = new Map<BlobId, bigint>()
  for (const seed of [200, 201, 202]) {
    const id = store.put(noise(seed, 50))
    tombstones.set(id, store.delete(id))
  }
  const never = "0123456789abcdef0123456789abcdef" as BlobId
  tombstones.set(never, store.delete(never))
  const aside = store.put(noise(300, 70))
  const aside_at = store.setAside(aside)
  // One that was set aside and came again, and one that was deleted and came again.
  store.setAside(store.put(noise(301, 70)))
  keep(301, 70)
  store.delete(store.put(noise(302, 70)))
  keep(302, 70)
  // A part of the journal is in the log already.
  store.acknowledge(20)
  writeFileSync(join(dir, "facts"), "20 told before\n")
  store.close()
  const plain = openPlain(dir)
  const rows = plain.blobs("", 1000)
  const cursor = plain.cursor()
  plain.close()
  return { blobs, rows, tombstones, aside: `${aside}-${aside_at}`, cursor }
}
type Expected = ReturnType<typeof makeStore>

const run = (dir: string, ...argv: ReadonlyArray<string>) =>
  spawnSync(process.execPath, [join(import.meta.dirname, "blob-migrater.ts"), dir, ...argv], {
    stdio: ["ignore", "inherit", "pipe"],
    encoding: "utf8",
  })

const open = (dir: string): Promise<VolumeEngine> =>
  openVolume({
    ...{ dir: join(dir, "volume"), segment_bytes: 8 * kib ** 2 },
    ...{ capacity_bytes: 1e12, size_max_bytes: 1e12, scrub_bytes_per_second: 0 },
  })

const bytesOf = async (volume: VolumeEngine, id: BlobId) => {
  const { data, windows } = await volume.get(id, {}, 0n)
  if (data) return Buffer.from(data)
  const parts: Array<Uint8Array> = []
  for await (const part of windows()) parts.push(part)
  return Buffer.concat(parts)
}

const factsOf = (dir: string) => readFileSync(join(dir, "facts"), "utf8").trim().split("\n")

const assertFacts = (dir: string, cursor: number) => {
  const cursors = factsOf(dir).map((line) => Number(line.split(" ")[0]))
  assert.deepEqual(
    cursors,
    Array.from({ length: cursor - 19 }, (_, n) => 20 + n),
    "every fact is in the log once, in order",
  )
}

const origin = { actor: "ann", request_id: "r-2", correlation_id: "c-2" }
const order = {
  ...({ labels: {}, policy: "REPLICATION_POLICY_NONE", origin } as const),
  ...{ expected_id: undefined, if_none_match: false },
}

/** The volume holds what the plain store held, and nothing else is left. */
const assertMigrated = async (dir: string, expected: Expected, damaged = 0) => {
  const { blobs, rows, tombstones, aside } = expected
  const cursor = expected.cursor + damaged
  assert.deepEqual(readdirSync(dir).sort(), ["facts", "volume"])
  assert.equal(migrationState(dir), "volume")
  assert(existsSync(join(dir, "volume", "quarantine", aside)))
  assertFacts(dir, cursor)
  const volume = await open(dir)
  try {
    const usage = await volume.usage()
    assert.equal(usage.blob_count, rows.length)
    assert.equal(
      usage.payload_bytes,
      rows.reduce((sum, { size }) => sum + size, 0),
    )
    assert.equal(usage.quarantined, 2 + damaged)
    assert.deepEqual((await volume.list("", "", 1000)).ids, rows.map(({ id }) => id).sort())
    for (const { id, created_at, labels, policy, checksum } of rows) {
      const meta = await volume.stat(id)
      assert.deepEqual(
        { ...meta },
        { size: meta.size, created_at, modified_at: created_at, labels, policy, checksum },
      )
      assert((await bytesOf(volume, id)).equals(blobs.get(id) ?? assert.fail(id)))
    }
    for (const [id, at] of tombstones) assert.equal(await volume.tombstone(id), at)
    assert.deepEqual(await volume.scan(0, 10), [], "no fact is told twice")
    const { id, meta } = await volume.put(order, [noise(999, 10)], 5n)
    const [fact] = await volume.scan(0, 10)
    assert.equal(`${fact?.cursor} ${fact?.id}`, `${cursor + 1} ${id}`)
    for (const { created_at } of rows) assert(meta.created_at > created_at)
    for (const at of tombstones.values()) assert(meta.created_at > at)
  } finally {
    await volume.shut()
  }
}

const steps = [
  ...["recorded", "quarantined", "tombstones", "blobs", "record", "cursor", "found", "mark"],
  ...["name", "quarantine", "blobs removed", "index removed", "mark removed"],
]

describe("the migration of a plain store", { timeout: timeout_ms }, () => {
  it("takes everything over, and the cursors go on", async () => {
    const dir = freshFolder()
    const expected = makeStore(dir)
    assert.equal(migrationState(dir), "plain")
    assert.deepEqual([run(dir).stderr, run(dir).status], ["", 0], "once more is nothing to do")
    await assertMigrated(dir, expected)
  })

  it("comes to the same when it is killed before each step in turn", async () => {
    const dir = freshFolder()
    const expected = makeStore(dir)
    for (const step of steps) {
      assert.equal(run(dir, step).signal, "SIGKILL", step)
      if (step === "blobs") assert.equal(run(dir, "", "1").signal, "SIGKILL")
      if (step === "blobs") assert.equal(run(dir, "", "20").signal, "SIGKILL")
    }
    assert.equal(run(dir).status, 0)
    await assertMigrated(dir, expected)
  })

  for (const kills of [[], ["found", "name"]]) {
    it(`sets aside what is damaged or gone, with ${kills.length} kills`, async () => {
      const dir = freshFolder()
      const { blobs, rows, ...expected } = makeStore(dir)
      const [gone, damaged, large] = [
        idOf(noise(1, 1)),
        idOf(noise(3, 64 * kib)),
        idOf(noise(6, 1500 * kib)),
      ]
      const fileOf = (id: BlobId) => join(dir, "blobs", id.slice(0, 2), id)
      rmSync(fileOf(gone))
      for (const id of [damaged, large]) {
        const bytes = readFileSync(fileOf(id))
        bytes[bytes.length >> 1] = (bytes[bytes.length >> 1] ?? 0) ^ 1
        writeFileSync(fileOf(id), bytes)
      }
      const lost = [gone, damaged, large]
      for (const step of kills) assert.equal(run(dir, step).signal, "SIGKILL")
      assert.equal(run(dir).status, 0)
      const left = rows.filter(({ id }) => !lost.includes(id))
      await assertMigrated(dir, { ...expected, blobs, rows: left }, lost.length)
      const last = factsOf(dir)
        .slice(-4)
        .map((line) => line.split(" ").slice(1).join(" "))
      for (const id of [damaged, large]) assert(last.includes(`quarantined ${id}`))
      assert(last.includes(`lost ${gone}`))
      const names = readdirSync(join(dir, "volume", "quarantine"))
      for (const id of [damaged, large]) assert(names.some((name) => name.startsWith(id)))
      assert.equal(
        names.some((name) => name.startsWith(gone)),
        false,
      )
    })
  }

  it("begins anew where an older version wrote to the plain store in between", async () => {
    const dir = freshFolder()
    makeStore(dir)
    assert.equal(run(dir, "name").signal, "SIGKILL")
    const store = plainStore(dir)
    store.delete(idOf(noise(0, 0)))
    store.delete(idOf(noise(3, sizes[3] ?? 0)))
    const again = store.put(noise(3, sizes[3] ?? 0), { seed: "again" })
    store.close()
    assert.equal(run(dir).status, 0)
    const volume = await open(dir)
    try {
      assert.equal((await volume.usage()).blob_count, sizes.length + 40 + 2 - 1)
      assert.deepEqual((await volume.stat(again)).labels, { seed: "again" })
      await assert.rejects(volume.stat(idOf(noise(0, 0))))
      assert((await volume.tombstone(idOf(noise(0, 0)))) !== undefined)
    } finally {
      await volume.shut()
    }
  })

  it("removes nothing that an older version wrote after it", async () => {
    const dir = freshFolder()
    makeStore(dir)
    assert.equal(run(dir, "quarantine").signal, "SIGKILL")
    const store = plainStore(dir)
    const id = store.put(noise(500, 10))
    store.close()
    const { status, stderr } = run(dir)
    assert.notEqual(status, 0)
    assert.match(stderr, /index.sqlite was written to after its migration/)
    assert(existsSync(store.fileOf(id)))
    assert.equal(migrationState(dir), "done")
  })

  it("does not begin where a volume is there that is another's", async () => {
    const dir = freshFolder()
    makeStore(dir)
    await (await open(dir)).shut()
    assert.equal(migrationState(dir), "both")
  })
})
