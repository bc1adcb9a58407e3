/**
 * A volume on the real disk: its process is killed while 256 writers write, and its disk fills up.
 */
import assert from "node:assert/strict"
import { spawn, spawnSync } from "node:child_process"
import { randomInt } from "node:crypto"
import { existsSync, mkdirSync, readFileSync, statSync } from "node:fs"
import { join } from "node:path"
import { setTimeout as pause } from "node:timers/promises"
import { afterAll, describe, it } from "vitest"
import type { BlobFact } from "#actors/blob-storage/ports/engine.ts"
import { faultOf } from "#actors/blob-storage/ports/fault.ts"
import type { BlobId } from "#schemas/blob-storage/blob.ts"
import { bytesRead } from "../../../packages/volume/test/crash/work.ts"
import {
  idOf,
  openFolder,
  order,
  origin,
  sizeOf,
} from "../../../packages/volume/test/kill-folder.ts"
import { noise } from "../../contract/blob-storage/engine-bytes.ts"
import { describeAbsent } from "../../world/programs/absent.ts"
import { seeded } from "../../world/seeded.ts"
import { cleanUp, newFolder, until } from "../../world/server/server.ts"

const rounds = 3
const ids_bytes_min = 20_000
const moment_ms_max = 100
const ready_ms_max = 60_000
const seeds_per_round = 10_000_000
const mib = 1024 * 1024

type Engine = Awaited<ReturnType<typeof openFolder>>

const writer = join(import.meta.dirname, "../../../packages/volume/test/kill-writer.ts")

afterAll(cleanUp)

/** Lets a process write until it has reported enough blobs, plus some time, and kills it. */
const writeUntilKilled = async (dir: string, path: string, first: number, more_ms: number) => {
  const child = spawn(process.execPath, [writer, dir, path, String(first)], {
    stdio: ["ignore", "inherit", "inherit"],
  })
  const exited = new Promise((resolve) => child.once("exit", resolve))
  const before = existsSync(path) ? statSync(path).size : 0
  await until("a load", ready_ms_max, () => {
    assert.equal(child.exitCode, null, "the writer ended by itself")
    return existsSync(path) && statSync(path).size - before > ids_bytes_min
  })
  await pause(more_ms)
  child.kill("SIGKILL")
  await exited
}

/** The reported states by identifier; the last one counts. */
const idsIn = (path: string) => {
  const blobs = new Map<BlobId, { readonly seed: number; readonly state: string }>()
  for (const line of readFileSync(path, "utf8").trimEnd().split("\n")) {
    const [state = "", seed] = line.split(" ")
    blobs.set(idOf(Number(seed)), { seed: Number(seed), state })
  }
  return blobs
}

const listed = async (engine: Engine) => {
  const ids: Array<BlobId> = []
  for (let more = true; more; ) {
    const page = await engine.list(ids.at(-1) ?? "", "", 10_000)
    ids.push(...page.ids)
    more = page.has_more
  }
  return ids
}

const allFacts = async (engine: Engine) => {
  const facts: Array<BlobFact> = []
  for (;;) {
    const page = await engine.scan(facts.at(-1)?.cursor ?? 0, 1000)
    if (page.length === 0) return facts
    facts.push(...page)
  }
}

const storedBy = (facts: ReadonlyArray<BlobFact>) => {
  const ids = new Set<BlobId>()
  for (const [index, { cursor, kind, id }] of facts.entries()) {
    assert.equal(cursor, index + 1)
    assert.equal(ids.has(id), kind === "deleted", `${kind} of ${id} cannot be`)
    if (kind === "stored") ids.add(id)
    else ids.delete(id)
  }
  return [...ids].sort()
}

const checkFolder = async (dir: string, path: string) => {
  const blobs = idsIn(path)
  const engine = await openFolder(dir)
  const ids = await listed(engine)
  const there = new Set(ids)
  for (const [id, { seed, state }] of blobs) {
    if (state === "stored") assert(there.has(id), `${id} of seed ${seed} is lost`)
    if (state === "deleted") assert(!there.has(id), `${id} of seed ${seed} is back`)
    if (!there.has(id)) continue
    const { bytes } = await bytesRead(engine, id, {}, 0n)
    assert(bytes.equals(noise(seed, sizeOf(seed))), `${id} of seed ${seed} has other bytes`)
  }
  // Unreported blobs exist completely or not at all.
  for (const id of ids) if (!blobs.has(id)) await bytesRead(engine, id, {}, 0n)
  assert.deepEqual(storedBy(await allFacts(engine)), ids)
  assert.equal((await engine.usage()).blob_count, ids.length)
  await engine.close()
  return blobs.size
}

describe("a volume whose process is killed while 256 writers write", () => {
  it("has all that it acknowledged, and nothing half done", async () => {
    const seed = randomInt(2 ** 31)
    const random = seeded(seed)
    const dir = newFolder()
    const ids_path = join(dir, "ids")
    for (let round = 0; round < rounds; round++) {
      const first = round * seeds_per_round
      const more_ms = random.between(0, moment_ms_max)
      await writeUntilKilled(join(dir, "volume"), ids_path, first, more_ms)
      const count = await checkFolder(join(dir, "volume"), ids_path)
      console.log(`volume: round ${round + 1} of seed ${seed}: ${count} blobs as they must be`)
    }
  }, 120_000)
})

const small_disk_bytes = 32 * mib

/** A separate file system; returns its path, or undefined if this user may not mount one. */
const smallDisk = () => {
  const dir = newFolder()
  const options = ["-t", "tmpfs", "-o", `size=${small_disk_bytes}`, "tmpfs", dir]
  return spawnSync("mount", options).status === 0 ? dir : undefined
}

const tagOf = async (work: Promise<unknown>) => {
  try {
    await work
    return "answered"
  } catch (cause) {
    return faultOf(cause)._tag
  }
}

/** Puts blobs of that size until one is rejected; returns the error's tag. */
const fill = async (engine: Engine, stored: Map<BlobId, Uint8Array>, size: number) => {
  for (let seed = 0; ; seed++) {
    const bytes = noise(size + seed, size)
    try {
      const { id } = await engine.put(order, [bytes], 0n)
      stored.set(id, bytes)
    } catch (cause) {
      return faultOf(cause)._tag
    }
  }
}

const fillAndRecover = async (dir: string) => {
  mkdirSync(join(dir, "volume"))
  const engine = await openFolder(join(dir, "volume"), mib)
  const stored = new Map<BlobId, Uint8Array>()
  for (const size of [200_000, 900_000, 5000, 100]) {
    assert.equal(await fill(engine, stored, size), "BlobCapacityExceeded", `of ${size} bytes`)
  }
  assert.equal((await engine.usage()).read_only, false)
  for (const [id, bytes] of stored) {
    assert((await bytesRead(engine, id, {}, 0n)).bytes.equals(bytes))
  }
  const cursor = (await allFacts(engine)).at(-1)?.cursor ?? 0
  await engine.acknowledge(cursor)
  for (const id of stored.keys()) await engine.delete(id, origin, 0n)
  assert.deepEqual(await listed(engine), [])
  await engine.acknowledge((await allFacts(engine)).at(-1)?.cursor ?? cursor)
  await engine.compact()
  const { id } = await engine.put(order, [noise(1, 5 * mib)], 0n)
  await engine.close()
  const again = await openFolder(join(dir, "volume"), mib)
  assert.deepEqual(await listed(again), [id])
  assert.equal(await tagOf(again.put(order, [noise(2, 200_000)], 0n)), "answered")
  await again.close()
}

const mounted = smallDisk()
const name = "a volume on a disk that is full"
if (mounted === undefined) {
  describeAbsent(name, "a small disk", "Only root may mount one.", false)
} else {
  describe(name, () => {
    afterAll(() => void spawnSync("umount", ["--lazy", mounted]))
    it("refuses puts, takes deletes, and takes puts again", () => fillAndRecover(mounted))
  })
}
