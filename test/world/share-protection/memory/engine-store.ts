/** The in-memory engine's data in a bucket, and its changes to a folder. */
import { createHash } from "node:crypto"
import { Effect } from "effect"
import {
  EngineFailed,
  type FolderBackup,
  type FolderRestore,
  type PlannedAction,
  planned_actions_max,
  type RestorePlan,
  type Sample,
  type Snapshot,
} from "#actors/share-protection/ports/engine.ts"
import { NotFound } from "#schemas/share-protection/rejection.ts"
import type { MemoryBucket } from "./buckets.ts"
import { below, type Entry, entriesOf, isSame, scopeOf, writeEntry } from "./snapshot-files.ts"

export interface StoredEntry extends Entry {
  readonly size: number
  readonly data?: string
}

export interface StoredSnapshot extends Omit<Snapshot, "engine_snapshot_id"> {
  readonly scope: Pick<FolderBackup, "include_patterns" | "exclude_patterns">
  readonly entries: ReadonlyArray<StoredEntry>
}

export const sha256 = (bytes: string | Uint8Array) =>
  createHash("sha256").update(bytes).digest("hex")
export const bytesOf = (value: unknown) => new TextEncoder().encode(JSON.stringify(value))
export const textOf = (bytes: Uint8Array | undefined) => new TextDecoder().decode(bytes)
export const fails = (detail: string, wrote_nothing = false) =>
  new EngineFailed({ detail, wrote_nothing })

export const readSnapshots = ({ objects }: MemoryBucket) =>
  [...objects]
    .filter(([key]) => key.startsWith("snapshots/"))
    .map(([key, { bytes }]): readonly [string, StoredSnapshot] => [
      key.slice("snapshots/".length),
      JSON.parse(textOf(bytes)),
    ])

/** The snapshot, and its entries to restore. */
export const wanted = Effect.fnUntraced(function* (
  bucket: MemoryBucket,
  { engine_snapshot_id, sub_path }: Pick<FolderRestore, "engine_snapshot_id" | "sub_path">,
) {
  const [, snapshot] = readSnapshots(bucket).find(([id]) => id === engine_snapshot_id) ?? []
  if (snapshot === undefined) return yield* fails("The snapshot does not exist.", true)
  const entries = below(snapshot.entries, sub_path)
  if (entries === null)
    return yield* new NotFound({ detail: "The backup has nothing at this path." })
  return { snapshot, entries }
})

/**
 * Entries of the folder or subtree that are not in the snapshot, deepest first. Excludes paths that
 * the patterns excluded from the snapshot, and the folders above them that the snapshot lacks.
 */
export const extras = Effect.fnUntraced(function* (
  { path, sub_path, unread = [] }: FolderRestore,
  snapshot: StoredSnapshot,
  entries: ReadonlyArray<StoredEntry>,
) {
  const present = yield* Effect.tryPromise({
    try: () => entriesOf(path, [], []),
    catch: () => fails("The folder cannot be read.", true),
  })
  const kept = new Map(entries.map((entry) => [entry.path, entry.kind]))
  const extra = (below(present, sub_path) ?? []).filter(
    (entry) => kept.get(entry.path) !== entry.kind,
  )
  const tops = extra
    .filter((entry) => !kept.has(entry.path))
    .filter((entry) => !extra.some((other) => entry.path.startsWith(`${other.path}/`)))
  const isIn = scopeOf(snapshot.scope.include_patterns, snapshot.scope.exclude_patterns)
  if (unread.includes("/")) return []
  const out = present.filter(
    (entry) => !isIn(entry.path) || unread.some((one) => isAt(entry.path, one)),
  )
  const spared = tops.filter((top) => out.some((one) => isAt(one.path, top.path)))
  return extra.filter((entry) => !spared.some((top) => isAt(entry.path, top.path))).toReversed()
})

const isAt = (path: string, top: string) => path === top || path.startsWith(`${top}/`)

export const plan = Effect.fnUntraced(function* (bucket: MemoryBucket, folder: FolderRestore) {
  const { snapshot, entries } = yield* wanted(bucket, folder)
  const deleted = (yield* extras(folder, snapshot, entries)).map(({ path }) => path)
  const actions: Array<PlannedAction> = deleted.map((path) => ({ action: "deleted", path }))
  let unchanged = 0
  for (const entry of entries) {
    const content = entry.data === undefined ? undefined : bucket.objects.get(entry.data)?.bytes
    const same = yield* Effect.promise(() => isSame(folder.path, entry, content))
    if (same === "same") unchanged++
    else actions.push({ action: same === "absent" ? "created" : "updated", path: entry.path })
  }
  actions.sort((one, other) => (one.path < other.path ? -1 : 1))
  const count = (wanted: PlannedAction["action"]) =>
    actions.filter(({ action }) => action === wanted).length
  return {
    hash: sha256(JSON.stringify(actions)),
    created: count("created"),
    updated: count("updated"),
    deleted: count("deleted"),
    unchanged,
    actions: actions.slice(0, planned_actions_max),
  } satisfies RestorePlan
})

/** Files in order of a hash of the seed and their path, up to the maximum number or size. */
const sampled = (
  entries: ReadonlyArray<StoredEntry>,
  { files_max, bytes_max, seed }: Sample,
): ReadonlyArray<StoredEntry> => {
  const chosen: Array<StoredEntry> = []
  let bytes = 0
  const files = entries
    .filter(({ kind }) => kind === "file")
    .map((entry) => [sha256(`${seed} ${entry.path}`), entry] as const)
    .toSorted(([one], [other]) => (one < other ? -1 : 1))
  for (const [, entry] of files) {
    if (chosen.length >= files_max || (chosen.length > 0 && bytes + entry.size > bytes_max)) break
    chosen.push(entry)
    bytes += entry.size
  }
  return chosen
}

export const prove = Effect.fnUntraced(function* (bucket: MemoryBucket, sample: Sample) {
  const { engine_snapshot_id, path } = sample
  const { entries } = yield* wanted(bucket, { engine_snapshot_id, sub_path: null })
  const chosen = sampled(entries, sample)
  for (const entry of chosen) {
    const content = entry.data && bucket.objects.get(entry.data)?.bytes
    if (!content) return yield* fails(`The repository lacks data of ${entry.path}.`)
    if (`data/${sha256(content)}` !== entry.data) return yield* fails(`${entry.path} differs.`)
    yield* Effect.promise(() => writeEntry(path, entry, content))
  }
  return { files: chosen.length, bytes: chosen.reduce((sum, { size }) => sum + size, 0) }
})
