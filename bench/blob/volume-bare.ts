/** Baselines for a volume's puts in the same process: one file per blob, and a bare segment. */
import { mkdir, open, rename } from "node:fs/promises"
import { join } from "node:path"

/** Stores these bytes durably under this name. */
export type Put = (name: string, bytes: Buffer) => Promise<void>

export interface Bare {
  readonly put: Put
  readonly stop: () => Promise<void>
}

/** One file per blob, synced, renamed into place, and the folder synced: two syncs per put. */
export const fileEach = async (folder: string): Promise<Bare> => {
  await mkdir(folder)
  const names = await open(folder)
  const put: Put = async (name, bytes) => {
    const path = join(folder, name)
    const file = await open(`${path}.tmp`, "wx")
    await file.write(bytes)
    await file.sync()
    await file.close()
    await rename(`${path}.tmp`, path)
    await names.sync()
  }
  return { put, stop: () => names.close() }
}

const segment_bytes = 1_073_741_824
const zeros_bytes = 8_388_608
const head_bytes = 80
/** Below the limit of 1,024 buffers per writev. */
const parts_max = 1000

interface Waiting {
  readonly bytes: Buffer
  readonly resolve: () => void
  readonly reject: (cause: unknown) => void
}

/**
 * One zero-filled segment with group commit, and nothing else: no hash, no checksum, no index, no
 * check for duplicates; it wraps around at the end. The upper bound for a volume.
 */
export const bareSegment = async (folder: string): Promise<Bare> => {
  await mkdir(folder)
  const file = await open(join(folder, "segment"), "w+")
  const zeros = Buffer.alloc(zeros_bytes)
  for (let at = 0; at < segment_bytes; at += zeros_bytes)
    await file.write(zeros, 0, zeros_bytes, at)
  await file.sync()
  let queue: Array<Waiting> = []
  let position = 0
  let is_busy = false
  const commit = async (batch: ReadonlyArray<Waiting>) => {
    const parts = batch.flatMap(({ bytes }) => [Buffer.alloc(head_bytes, 1), bytes])
    const length = parts.reduce((total, part) => total + part.length, 0)
    if (position + length > segment_bytes) position = 0
    const at = position
    position += length
    await file.writev(parts, at)
    await file.datasync()
  }
  const pump = async () => {
    while (queue.length > 0) {
      const batch = queue.splice(0, parts_max / 2)
      try {
        await commit(batch)
        for (const { resolve } of batch) resolve()
      } catch (cause) {
        for (const { reject } of batch) reject(cause)
      }
    }
    is_busy = false
  }
  const put: Put = (_name, bytes) =>
    new Promise((resolve, reject) => {
      queue.push({ bytes, resolve, reject })
      if (is_busy) return
      is_busy = true
      // Puts of the same turn are committed together.
      setImmediate(() => void pump())
    })
  return {
    put,
    stop: async () => {
      queue = []
      await file.close()
    },
  }
}
