/** Verifies a snapshot by a sample: restores some files and compares them with the backup. */
import { createHash } from "node:crypto"
import { lstat } from "node:fs/promises"
import { Effect } from "effect"
import { EngineFailed, type Sample } from "#actors/share-protection/ports/engine.ts"
import { type Call, callLines } from "./call.ts"
import { listNodes } from "./listing.ts"
import type { Node } from "./message.ts"
import { literal } from "./pattern.ts"
import { realFolder } from "./restore.ts"

/**
 * Maximum length of all names: a command line is limited to 2 MiB, and a character may take four
 * bytes.
 */
const names_chars_max = 300_000

/**
 * Restores and verifies a sample of the snapshot; fails if a file differs or cannot be restored.
 */
export const verifySample = Effect.fnUntraced(function* (call: Call, sample: Sample) {
  const root = yield* realFolder(sample.path)
  const { consider, chosen } = sampler(sample)
  yield* listNodes(call, sample.engine_snapshot_id, "", consider)
  const files = chosen()
  if (files.length === 0) return { files: 0, bytes: 0 }
  const args = ["restore", "--json", "--sparse", "--verify", `--target=${root}`]
  const includes = files.map(({ path }) => `--include=${literal(path)}`)
  yield* callLines(call, [...args, ...includes, sample.engine_snapshot_id], () => {})
  for (const { path, size } of files) {
    const stats = yield* Effect.promise(() => lstat(`${root}${path}`).catch(() => undefined))
    if (stats?.isFile() !== true || stats.size !== size) {
      const detail = `A restored file differs from its backup: ${path}`
      return yield* new EngineFailed({ detail, wrote_nothing: false })
    }
  }
  return { files: files.length, bytes: files.reduce((sum, { size }) => sum + size, 0) }
})

interface SampleFile {
  readonly path: string
  readonly size: number
  readonly rank: string
}

/** Ranks files by a hash of seed and path, and keeps the lowest. */
const sampler = ({ files_max, bytes_max, seed }: Sample) => {
  const lowest: Array<SampleFile> = []
  const consider = ({ type, path, size }: Node) => {
    // Names that are not valid UTF-8 cannot be requested: JSON replaces their bytes.
    if (type !== "file" || path.includes("\uFFFD")) return
    const rank = createHash("sha256").update(`${seed}\0${path}`).digest("hex")
    const last = lowest.at(-1)
    if (lowest.length >= files_max && last !== undefined && rank >= last.rank) return
    lowest.splice(indexFor(lowest, rank), 0, { path, size, rank })
    lowest.splice(files_max)
  }
  const chosen = () => {
    const files: Array<SampleFile> = []
    let bytes = 0
    let chars = 0
    for (const file of lowest) {
      bytes += file.size
      chars += file.path.length
      if (files.length > 0 && (bytes > bytes_max || chars > names_chars_max)) break
      files.push(file)
    }
    return files
  }
  return { consider, chosen }
}

/** The position of a rank in the sorted list. */
const indexFor = (lowest: ReadonlyArray<SampleFile>, rank: string) => {
  let low = 0
  let high = lowest.length
  while (low < high) {
    const middle = (low + high) >> 1
    if ((lowest[middle]?.rank ?? "") < rank) low = middle + 1
    else high = middle
  }
  return low
}
