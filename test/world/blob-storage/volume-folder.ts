/** Folders and engines for tests of a volume that `openBlobVolume` opens. */
import { mkdtempSync, readdirSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Effect } from "effect"
import { openBlobVolume } from "#adapters/blob-storage/open-volume.ts"
import { flipBit as flipBitOf } from "../../../packages/volume/test/volume-folder.ts"

const mib = 1024 ** 2
/** Small, because each test's store fills its own segments with zeros. */
export const segment_bytes = 8 * mib
const capacity_bytes = 8 * 1024 * mib

/** A folder that is removed when the scope closes. */
export const freshFolder = Effect.acquireRelease(
  Effect.sync(() => mkdtempSync(join(tmpdir(), "almanac-blobs-"))),
  (dir) => Effect.sync(() => rmSync(dir, { recursive: true, force: true })),
)

/** The engine of the folder's volume, until the scope closes. */
export const openEngine = (dir: string) => openBlobVolume({ dir, capacity_bytes, segment_bytes })

/** Every file under one part of the store's folder. */
export const filesUnder = (dir: string, part: string) =>
  readdirSync(join(dir, part), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))

/** Enough random bytes to be unique. */
const sample_bytes = 32

/** Flips one bit of a stored blob, which is found by its bytes at that position. */
export const flipBit = (dir: string, bytes: Uint8Array, position: number) =>
  flipBitOf(join(dir, "volume"), bytes.subarray(position, position + sample_bytes))
