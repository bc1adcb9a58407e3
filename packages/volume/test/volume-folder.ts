/**
 * Volumes in real folders on a disk that can delay, fail or corrupt its operations, and helpers for
 * tests.
 */
import {
  closeSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeSync,
} from "node:fs"
import { tmpdir } from "node:os"
import { basename, join } from "node:path"
import type { BlobRange, PutOrder } from "#actors/blob-storage/ports/engine.ts"
import { faultOf } from "#actors/blob-storage/ports/fault.ts"
import type { BlobId } from "#schemas/blob-storage/blob.ts"
import { type VolumeDisk, type VolumeFile, volumeDisk } from "../disk.ts"
import { openVolume, type VolumeEngine, type VolumeOptions } from "../engine.ts"

export const kib = 1024
export const mib = 1024 * kib

export const order: PutOrder = {
  labels: {},
  policy: "REPLICATION_POLICY_UNSPECIFIED",
  origin: { actor: "tester", request_id: "r-1", correlation_id: "c-1" },
  expected_id: undefined,
  if_none_match: false,
}

/** Called at each step of the disk with the file's name. It may wait or throw. */
export interface Hooks {
  write?: (name: string, position: number, parts: ReadonlyArray<Uint8Array>) => unknown
  datasync?: (name: string) => unknown
  /** May change the bytes that were read. */
  read?: (name: string, bytes: Uint8Array) => unknown
  create?: (name: string) => unknown
}

/** A file's name, which may change while it is open. */
interface Named {
  name: string
}

const hookedFile = (file: VolumeFile, named: Named, hooks: Hooks): VolumeFile => ({
  ...file,
  write: async (parts, position) => {
    await hooks.write?.(named.name, position, parts)
    return file.write(parts, position)
  },
  datasync: async () => {
    await hooks.datasync?.(named.name)
    return file.datasync()
  },
  read: async (position, length, into) => {
    const bytes = await file.read(position, length, into)
    await hooks.read?.(named.name, bytes)
    return bytes
  },
  readSync: (position, length) => {
    const bytes = file.readSync(position, length)
    hooks.read?.(named.name, bytes)
    return bytes
  },
})

const hookedDisk = (hooks: Hooks): VolumeDisk => {
  const open = new Map<string, Named>()
  const hooked = (file: VolumeFile, path: string) => {
    const named = { name: basename(path) }
    open.set(path, named)
    return hookedFile(file, named, hooks)
  }
  return {
    ...volumeDisk,
    create: async (path) => {
      await hooks.create?.(basename(path))
      return hooked(await volumeDisk.create(path), path)
    },
    open: async (path) => hooked(await volumeDisk.open(path), path),
    rename: async (from, to) => {
      await volumeDisk.rename(from, to)
      const named = open.get(from)
      if (named) named.name = basename(to)
    },
  }
}

export interface Volume {
  readonly engine: VolumeEngine
  readonly dir: string
  readonly hooks: Hooks
  /** Closes the volume and opens it again. */
  readonly reopen: (changes?: Partial<VolumeOptions>) => Promise<Volume>
}

/** Runs the body with a volume in its own folder, without background work. */
export const withVolume = async (
  body: (volume: Volume) => Promise<void>,
  options: Partial<VolumeOptions> = {},
) => {
  const dir = mkdtempSync(join(tmpdir(), "almanac-volume-"))
  const hooks: Hooks = {}
  let engine: VolumeEngine | undefined
  const open = async (changes: Partial<VolumeOptions>): Promise<Volume> => {
    const given = {
      dir,
      capacity_bytes: 1024 * mib,
      size_max_bytes: 1024 * mib,
      segment_bytes: 2 * mib,
      scrub_bytes_per_second: 0,
      background: false,
      ...options,
      ...changes,
    }
    const opened = await openVolume(given, hookedDisk(hooks))
    engine = opened
    const reopen = async (more: Partial<VolumeOptions> = changes) => {
      await opened.close()
      return open(more)
    }
    return { engine: opened, dir, hooks, reopen }
  }
  try {
    await body(await open({}))
  } finally {
    for (const hook of ["write", "datasync", "read", "create"] as const) delete hooks[hook]
    await engine?.close()
    rmSync(dir, { recursive: true, force: true })
  }
}

export const put = ({ engine }: Volume, bytes: Uint8Array, changes: Partial<PutOrder> = {}) =>
  engine.put({ ...order, ...changes }, [bytes], 5n)

export const remove = ({ engine }: Volume, id: BlobId) => engine.delete(id, order.origin, 6n)

/** All bytes of a range, in windows of verified length. */
export const readAll = async ({ engine }: Volume, id: BlobId, range: BlobRange = {}) => {
  const { data, windows } = await engine.get(id, range, 7n)
  const found: Array<Uint8Array> = []
  for await (const window of windows()) {
    if (window.length === 0 || window.length > 983_040) throw new Error("not a window")
    found.push(window)
  }
  const all = Buffer.concat(found)
  if (data && !all.equals(data)) throw new Error("the windows are not the data")
  return all
}

/** The tag of the fault that rejects the work; undefined if it succeeds. */
export const faultTag = async (work: Promise<unknown>) => {
  try {
    await work
    return undefined
  } catch (cause) {
    return faultOf(cause)._tag
  }
}

export const kinds = async ({ engine }: Volume) =>
  (await engine.scan(0, 1000)).map(({ kind, id }) => `${kind} ${id}`)

export const names = (dir: string, part = "") => readdirSync(join(dir, part)).sort()

/** The only position of these bytes in the volume's files. */
export const placeOf = (dir: string, sample: Uint8Array) => {
  const places = names(dir)
    .filter((name) => name.endsWith(".seg"))
    .map((name) => ({ path: join(dir, name), at: readFileSync(join(dir, name)).indexOf(sample) }))
    .filter(({ at }) => at >= 0)
  const [place] = places
  if (!place || places.length > 1) throw new Error(`the bytes are in ${places.length} files`)
  return place
}

/** Flips one bit, `by` bytes after the position of the bytes. */
export const flipBit = (dir: string, sample: Uint8Array, by = 0) => {
  const { path, at } = placeOf(dir, sample)
  const file = openSync(path, "r+")
  writeSync(file, Buffer.of((readFileSync(path)[at + by] ?? 0) ^ 4), 0, 1, at + by)
  closeSync(file)
}
