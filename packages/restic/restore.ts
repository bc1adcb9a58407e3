/** Restores a whole snapshot, or a folder, file or link in it. */
import { lstat, realpath, rmdir } from "node:fs/promises"
import { Effect } from "effect"
import type { EngineProgress, FolderRestore } from "#actors/share-protection/ports/engine.ts"
import { type Call, callLines, failsBefore } from "./call.ts"
import { exactRestoreArgs, restoreArgs } from "./dry-run.ts"
import { countFiles, isWholeId, nothing_folder, subPathOf } from "./listing.ts"
import { readStatus } from "./message.ts"
import { onlyAt } from "./scope.ts"

/** The real path of the folder: absolute, and without links. */
export const realFolder = (path: string) =>
  Effect.tryPromise({
    try: async () => {
      const real = await realpath(path)
      if (!(await lstat(real)).isDirectory()) throw new Error("no folder")
      return real
    },
    catch: () => failsBefore("The folder does not exist."),
  })

/**
 * The target and the path of a restore, and the parent folders that are missing there. Fails if a
 * parent is not a folder: restic would follow a link to any place that a tenant chooses.
 */
export const restoreOf = Effect.fnUntraced(function* (folder: FolderRestore) {
  const { engine_snapshot_id } = folder
  const [root, path] = yield* Effect.all([realFolder(folder.path), subPathOf(folder)])
  if (!isWholeId(engine_snapshot_id)) return yield* failsBefore("The snapshot does not exist.")
  const missing: Array<string> = []
  const names = path.split("/").slice(1, -1)
  for (const parent of names.map((_, depth) => `/${names.slice(0, depth + 1).join("/")}`)) {
    const stats = yield* Effect.promise(() => lstat(`${root}${parent}`).catch(() => undefined))
    if (stats === undefined) missing.push(parent)
    else if (!stats.isDirectory()) {
      return yield* failsBefore(`${parent} in the share is not a folder.`)
    }
  }
  return { folder, root, path, missing }
})

/**
 * Restores, and returns the number of restored files and bytes. Files that the backup excluded or
 * could not read are left alone.
 */
export const restoreFolder = Effect.fnUntraced(function* (
  call: Call,
  folder: FolderRestore,
  onProgress: (progress: EngineProgress) => void,
) {
  const { engine_snapshot_id, is_exact } = folder
  const resolved = yield* restoreOf(folder)
  const { root, path } = resolved
  const what = is_exact ? yield* exactRestoreArgs(call, resolved) : onlyAt(path)
  const args = [...restoreArgs(root, folder), "--sparse", ...what]
  const restore = callLines(call, args, (line) => {
    const status = readStatus(line)
    if (status === undefined) return
    const { percent_done, bytes_restored, total_bytes } = status
    onProgress({
      percent: percentOf(percent_done),
      bytes_done: bytes_restored,
      bytes_total: total_bytes,
    })
  })
  const count = countFiles(call, engine_snapshot_id, path)
  // In parallel, because opening a repository takes half a second. But a path must be known to
  // exist before anything is deleted for it.
  if (path !== "") return yield* Effect.tap(count, restore)
  const [counted] = yield* Effect.all([count, restore], { concurrency: 2 })
  // Most snapshots have no placeholder, and a folder of this name that is not empty is a user's.
  yield* Effect.promise(() => rmdir(`${root}/${nothing_folder}`).catch(() => undefined))
  return counted
})

/** Converts restic's fraction to a percentage. */
export const percentOf = (part: number) => Math.min(100, 100 * part)
