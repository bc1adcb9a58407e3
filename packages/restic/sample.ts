/** A proof by sample: some files of a snapshot, restored and compared with what was backed up. */
import { createHash } from "node:crypto"
import { lstat } from "node:fs/promises"
import { Effect } from "effect"
import { EngineFailed, type Sample } from "#actors/share-protection/ports/engine.ts"
import { type Call, callLines } from "./call.ts"
import { listNodes } from "./listing.ts"
import type { Node } from "./message.ts"
import { literal } from "./pattern.ts"
import { realFolder } from "./restore.ts"

/** Characters of all names together: a command line has 2 MiB, and each may be four bytes. */
const names_chars_max = 300_000

/** Restores a sample of the snapshot; fails when a file of it differs or cannot be had. */
export const proveSample = Effect.fnUntraced(function* (call: Call, sample: Sample) {
  const root = yield* realFolder(sample.path)
  const { offer, chosen } = sampler(sample)
  yield* listNodes(call, sample.engine_snapshot_id, "", offer)
  const files = chosen()
  if (files.length === 0) return { files: 0, bytes: 0 }
  const words = ["restore", "--json", "--sparse", "--verify", `--target=${root}`]
  const includes = files.map(({ path }) => `--include=${literal(path)}`)
  yield* callLines(call, [...words, ...includes, sample.engine_snapshot_id], () => {})
  for (const { path, size } of files) {
    const stats = yield* Effect.promise(() => lstat(`${root}${path}`).catch(() => undefined))
    if (stats?.isFile() !== true || stats.size !== size) {
      const detail = `A restored file is not as it was backed up: ${path}`
      return yield* new EngineFailed({ detail, wrote_nothing: false })
    }
  }
  return { files: files.length, bytes: files.reduce((sum, { size }) => sum + size, 0) }
})

interface Drawn {
  readonly path: string
  readonly size: number
  readonly lot: string
}

/** Draws lots by seed and path, and keeps the files with the lowest. */
const sampler = ({ files_max, bytes_max, seed }: Sample) => {
  const drawn: Array<Drawn> = []
  const offer = ({ type, path, size }: Node) => {
    // A name that is no text cannot be asked for: JSON has another in its place.
    if (type !== "file" || path.includes("\uFFFD")) return
    const lot = createHash("sha256").update(`${seed}\0${path}`).digest("hex")
    const last = drawn.at(-1)
    if (drawn.length >= files_max && last !== undefined && lot >= last.lot) return
    drawn.splice(placeFor(drawn, lot), 0, { path, size, lot })
    drawn.splice(files_max)
  }
  const chosen = () => {
    const files: Array<Drawn> = []
    let bytes = 0
    let chars = 0
    for (const file of drawn) {
      bytes += file.size
      chars += file.path.length
      if (files.length > 0 && (bytes > bytes_max || chars > names_chars_max)) break
      files.push(file)
    }
    return files
  }
  return { offer, chosen }
}

/** Where it belongs in the order of the lots. */
const placeFor = (drawn: ReadonlyArray<Drawn>, lot: string) => {
  let low = 0
  let high = drawn.length
  while (low < high) {
    const middle = (low + high) >> 1
    if ((drawn[middle]?.lot ?? "") < lot) low = middle + 1
    else high = middle
  }
  return low
}
