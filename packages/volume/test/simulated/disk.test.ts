/** The simulated disk fails as documented, and in no way that a real disk does not. */
import assert from "node:assert/strict"
import { describe, it } from "vitest"
import { seeded } from "../../../../test/world/seeded.ts"
import type { VolumeFile } from "../../disk.ts"
import { type SimulatedDisk, simulateDisk } from "./disk.ts"
import { block_bytes, sector_bytes } from "./file.ts"
import type { Fault } from "./steps.ts"

const seeds = Array.from({ length: 600 }, (_, seed) => seed)
const path = "/v/file"
const size = 4 * sector_bytes
const old = new Uint8Array(size).fill(1)
const fresh = new Uint8Array(size).fill(2)

/** A file of old bytes, durable in name and content. */
const settled = async (seed: number) => {
  const simulated = simulateDisk(seeded(seed))
  const file = await simulated.disk.create(path)
  await file.write([old], 0)
  await file.datasync()
  await simulated.disk.syncFolder("/v")
  return { simulated, file }
}

type Deed = (simulated: SimulatedDisk, file: VolumeFile) => Promise<unknown>

/**
 * Contents of the file's sectors after the action and the crash, by seed: "1122" is half of each.
 */
const afterwards = async (end: "power" | "kill", deed: Deed) => {
  const found = new Set<string>()
  for (const seed of seeds) {
    const { simulated, file } = await settled(seed)
    await Promise.race([deed(simulated, file), simulated.end])
    simulated.stop(end)
    const after = simulated.after()
    const bytes = after.paths().includes(path) ? after.bytes(path) : new Uint8Array(0)
    const sectors = Array.from({ length: bytes.length / sector_bytes }, (_, n) =>
      bytes.subarray(n * sector_bytes, (n + 1) * sector_bytes),
    )
    assert(sectors.every((sector) => sector.every((byte) => byte === sector[0])))
    found.add(sectors.map(([byte]) => byte).join(""))
  }
  return found
}

const planned =
  (fault: Fault, deed: Deed): Deed =>
  (simulated, file) => {
    simulated.plan(1, fault)
    return deed(simulated, file)
  }

const overwrite: Deed = (_, file) => file.write([fresh], 0)

describe("bytes on the simulated disk", () => {
  it("are durable after a sync", async () => {
    const found = await afterwards("power", async (_, file) => {
      await file.write([fresh], 0)
      await file.datasync()
    })
    assert.deepEqual([...found], ["2222"])
  })
  it("survive sector by sector if they were written and not synced", async () => {
    const found = await afterwards("power", overwrite)
    assert.equal(found.size, 16, [...found].join(" "))
  })
  it("are covered by a sync only if their write ended before it started", async () => {
    const found = await afterwards("power", async (_, file) => {
      const synced = file.datasync()
      await Promise.all([file.write([fresh], 0), synced])
    })
    assert(found.has("1111") && found.has("2222"))
  })
  it("stay if only the process is killed, and are as volatile as before", async () => {
    assert.deepEqual([...(await afterwards("kill", overwrite))], ["2222"])
    const found = new Set<string>()
    for (const seed of seeds) {
      const { simulated, file } = await settled(seed)
      await file.write([fresh], 0)
      simulated.stop("kill")
      const again = simulated.after()
      again.stop("power")
      found.add(`${again.after().bytes(path)[0]}`)
    }
    assert.deepEqual([...found].sort(), ["1", "2"])
  })
  it("are torn if the crash happens during the write", async () => {
    for (const end of ["power", "kill"] as const) {
      const found = await afterwards(end, planned({ kind: end, moment: "within" }, overwrite))
      for (const some of ["1111", "2111", "2211", "2221"]) assert(found.has(some), `${end} ${some}`)
    }
  })
  it("of a failed sync may never become durable, even after later syncs", async () => {
    const found = await afterwards("power", async (simulated, file) => {
      await file.write([fresh], 0)
      simulated.plan(1, { kind: "error" })
      await assert.rejects(file.datasync(), { code: "EIO" })
      assert.equal(file.readSync(0, 1)[0], 2)
      await file.datasync()
    })
    assert(found.has("1111") && found.has("2222"))
  })
  it("of a misdirected write land elsewhere in the file", async () => {
    const found = await afterwards("kill", planned({ kind: "misdirected" }, overwrite))
    assert([...found].every((sectors) => sectors.startsWith("1111") && sectors.includes("2")))
  })
  it("are copied at the end of a write, which exposes changes made meanwhile", async () => {
    const { simulated, file } = await settled(1)
    const part = fresh.slice()
    const written = file.write([part], 0)
    part.fill(3)
    await written
    assert.equal(simulated.bytes(path)[0], 3)
  })
})

describe("names on the simulated disk", () => {
  const made = async (simulated: SimulatedDisk, is_synced: boolean) => {
    await simulated.disk.rename(path, "/v/other")
    await (await simulated.disk.create("/v/third")).close()
    if (is_synced) await simulated.disk.syncFolder("/v")
  }
  const namesAfter = async (is_synced: boolean) => {
    const found = new Set<string>()
    for (const seed of seeds) {
      const { simulated } = await settled(seed)
      await made(simulated, is_synced)
      simulated.stop("power")
      found.add([...simulated.after().paths()].sort().join(" "))
    }
    return [...found].sort()
  }
  it("are durable once their folder is synced, and survive at random before", async () => {
    assert.deepEqual(await namesAfter(true), ["/v/other /v/third"])
    const all = ["/v/file", "/v/file /v/third", "/v/other", "/v/other /v/third"]
    assert.deepEqual(await namesAfter(false), all)
  })
})

describe("the simulated disk", () => {
  it("is full at its limit, but still overwrites what was written before", async () => {
    const { simulated, file } = await settled(1)
    const block = new Uint8Array(block_bytes).fill(3)
    await file.write([block], 3 * block_bytes)
    assert.equal(simulated.usedBytes(), 2 * block_bytes)
    simulated.limit(3 * block_bytes)
    await file.write([fresh], 0)
    await file.write([fresh], block_bytes - size)
    await assert.rejects(file.write([block, block], block_bytes + 100), { code: "ENOSPC" })
    assert.equal((await file.read(2 * block_bytes - 1, 1))[0], 3)
    assert.equal((await file.read(2 * block_bytes, 1))[0], 0)
    await assert.rejects(file.write([fresh], 4 * block_bytes), { code: "ENOSPC" })
    assert.equal(await file.size(), 4 * block_bytes)
    await assert.rejects(simulated.disk.create("/v/more"), { code: "ENOSPC" })
    simulated.limit(Number.POSITIVE_INFINITY)
    await file.write([fresh], 2 * block_bytes)
  })
  it("completes steps in any order", async () => {
    const orders = new Set<string>()
    for (const seed of seeds) {
      const { file } = await settled(seed)
      const ended: Array<number> = []
      const write = (n: number) => file.write([fresh], n * size).then(() => ended.push(n))
      await Promise.all([write(0), write(1), write(2)])
      orders.add(ended.join(""))
    }
    assert.equal(orders.size, 6)
  })
  it("does not respond after the crash", async () => {
    const { simulated, file } = await settled(1)
    const answers: Array<string> = []
    simulated.plan(2, { kind: "power", moment: "after" })
    void file.write([fresh], 0).then(() => answers.push("first"))
    void file.write([fresh], 0).then(() => answers.push("second"))
    assert.equal(await simulated.end, "power")
    void file.read(0, 1).then(() => answers.push("read"))
    for (let turn = 0; turn < 3; turn++) await new Promise(setImmediate)
    assert.deepEqual(answers, [])
  })
  it("misreads as often as requested, with the right bytes on disk", async () => {
    const { simulated, file } = await settled(1)
    simulated.misread(1)
    assert(!Buffer.from(await file.read(0, size)).equals(old))
    assert(Buffer.from(await file.read(0, size)).equals(old))
  })
})
