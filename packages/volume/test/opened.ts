/**
 * Volumes in temporary folders, with files small enough to fill with a few puts, and disks that
 * fail.
 */
import assert from "node:assert/strict"
import { cpSync, mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { onTestFinished } from "vitest"
import type { PutOrder } from "#actors/blob-storage/ports/engine.ts"
import { faultOf } from "#actors/blob-storage/ports/fault.ts"
import { noise } from "../../../test/contract/blob-storage/engine-bytes.ts"
import { type VolumeDisk, type VolumeFile, volumeDisk } from "../disk.ts"
import { openVolume, type VolumeEngine, type VolumeOptions } from "../engine.ts"

export const origin = { actor: "tester", request_id: "r-1", correlation_id: "c-1" }

export const order: PutOrder = {
  labels: {},
  policy: "REPLICATION_POLICY_UNSPECIFIED",
  origin,
  expected_id: undefined,
  if_none_match: false,
}

export const freshFolder = () => {
  const dir = mkdtempSync(join(tmpdir(), "volume-"))
  onTestFinished(() => rmSync(dir, { recursive: true, force: true }))
  return join(dir, "volume")
}

/** A copy of the folder as it is: what a killed process would leave. */
export const copyOf = (dir: string) => {
  const copy = freshFolder()
  cpSync(dir, copy, { recursive: true })
  return copy
}

/** Opens a volume with files of 128 KiB. It is closed when the test ends. */
export const opened = async (
  dir: string,
  changes: Partial<VolumeOptions> = {},
  disk: VolumeDisk = volumeDisk,
): Promise<VolumeEngine> => {
  let clock = 0
  const engine = await openVolume(
    {
      dir,
      capacity_bytes: 2 ** 40,
      size_max_bytes: 2 ** 40,
      segment_bytes: 128 * 1024,
      scrub_bytes_per_second: 0,
      background: false,
      // Far enough apart that no file is longer than the previous one.
      now: () => {
        clock += 20_000
        return clock
      },
      ...changes,
    },
    disk,
  )
  let is_shut = false
  const shut = async () => {
    if (is_shut) return
    is_shut = true
    await engine.close()
  }
  onTestFinished(shut)
  return { ...engine, close: shut }
}

export const bytesOf = (seed: number, size = 1000) => noise(seed, size)

export const putOne = (engine: VolumeEngine, seed: number, size = 1000) =>
  engine.put(order, [bytesOf(seed, size)], BigInt(seed) + 1000n)

/** Puts a blob for each seed, one batch each. */
export const putEach = async (engine: VolumeEngine, seeds: ReadonlyArray<number>, size = 1000) => {
  const ids = []
  for (const seed of seeds) ids.push((await putOne(engine, seed, size)).id)
  return ids
}

export const tagOf = async (work: Promise<unknown>) => {
  try {
    await work
    return "none"
  } catch (cause) {
    return faultOf(cause)._tag
  }
}

/** Whether the blob of a seed is read back intact; otherwise the fault's tag. */
export const readOne = async (engine: VolumeEngine, seed: number, size = 1000) => {
  const { id } = await idOf(seed, size)
  try {
    const { data } = await engine.get(id, {}, 5000n)
    assert(Buffer.from(data ?? []).equals(bytesOf(seed, size)), `blob ${seed} is another`)
    return "whole"
  } catch (cause) {
    return faultOf(cause)._tag
  }
}

const ids = new Map<string, Awaited<ReturnType<typeof identify>>>()
const identify = async (seed: number, size: number) => {
  const { blake3 } = await import("@napi-rs/blake-hash")
  const hash = blake3(bytesOf(seed, size)).toString("hex")
  // The first half of a BLAKE3 digest in hex is a BlobId.
  return { id: hash.slice(0, 32) as Awaited<ReturnType<VolumeEngine["put"]>>["id"] }
}
const idOf = async (seed: number, size: number) => {
  const key = `${seed} ${size}`
  const known = ids.get(key) ?? (await identify(seed, size))
  ids.set(key, known)
  return known
}

/** Called with a step and its path. Throwing makes the step fail. */
export type Watch = (step: "create" | "write" | "datasync", path: string) => void

/** The real disk, with `watch` called before each step that changes a file. */
export const watchedDisk = (watch: Watch): VolumeDisk => {
  const watched = (file: VolumeFile, path: string): VolumeFile => ({
    ...file,
    write: async (parts, position) => {
      watch("write", path)
      await file.write(parts, position)
    },
    datasync: async () => {
      watch("datasync", path)
      await file.datasync()
    },
  })
  return {
    ...volumeDisk,
    create: async (path) => {
      watch("create", path)
      return watched(await volumeDisk.create(path), path)
    },
    open: async (path) => watched(await volumeDisk.open(path), path),
  }
}

export const diskError = (code: string) =>
  Object.assign(new Error(`${code}: by the test`), { code })
