/** The disk under measurement; its noise shows how far to trust results that need a sync. */
import { mkdtemp, open, rm, statfs } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { quantile } from "./round.ts"

/** Enough syncs for a p50, few enough to take about ten milliseconds before each round. */
const syncs = 40
/** About the size of a commit. */
const block_bytes = 512

export interface SyncNoise {
  readonly p50_ms: number
  readonly p99_ms: number
}

/** Appends `syncs` blocks to a file in `folder`, with an fdatasync after each. */
export const syncNoise = async (folder: string): Promise<SyncNoise> => {
  const path = join(folder, "sync-noise")
  const file = await open(path, "w")
  const block = Buffer.alloc(block_bytes, 1)
  const latencies: Array<number> = []
  for (let i = 0; i < syncs; i++) {
    const began = performance.now()
    await file.write(block)
    await file.datasync()
    latencies.push(performance.now() - began)
  }
  await file.close()
  await rm(path)
  return { p50_ms: quantile(latencies, 0.5), p99_ms: quantile(latencies, 0.99) }
}

/** statfs(2) magic numbers of the most common file systems. */
const file_systems: Readonly<Record<number, string>> = {
  16914836: "tmpfs",
  1481003842: "xfs",
  2035054128: "overlay",
  2435016766: "btrfs",
  61267: "ext4",
}

export const fileSystem = async (folder: string): Promise<string> => {
  const { type } = await statfs(folder)
  return file_systems[type] ?? `file system 0x${type.toString(16)}`
}

/**
 * A new folder on a disk: in TMPDIR or else in /var/tmp, because /tmp is often in memory, where a
 * sync costs nothing and proves nothing. Other users may traverse it, but not list it.
 */
export const scratchFolder = async (): Promise<string> => {
  const base =
    process.env.TMPDIR ?? ((await fileSystem(tmpdir())) === "tmpfs" ? "/var/tmp" : tmpdir())
  return mkdtemp(join(base, "almanac-bench-"))
}
