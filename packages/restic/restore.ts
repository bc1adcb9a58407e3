/** Restores by restic: of a whole snapshot, a folder in it, a file or a link. */
import { lstat, realpath, rmdir } from "node:fs/promises"
import { Effect } from "effect"
import type { EngineProgress, FolderRestore } from "#actors/share-protection/ports/engine.ts"
import { type Call, callLines, failsBefore } from "./call.ts"
import { countFiles, isWholeId, nothing_folder, subPathOf } from "./listing.ts"
import { readStatus } from "./message.ts"
import { exactly, restoreWords } from "./rehearsal.ts"
import { onlyAt } from "./scope.ts"

/** The folder's own path, which is absolute and leads over no link. */
export const realFolder = (path: string) =>
  Effect.tryPromise({
    try: async () => {
      const real = await realpath(path)
      if (!(await lstat(real)).isDirectory()) throw new Error("no folder")
      return real
    },
    catch: () => failsBefore("The folder is not there."),
  })

/**
 * Where a restore goes, what of the snapshot, and the folders above that which are missing there.
 * Fails where one of them is no folder: restic would follow a link, wherever a tenant led it.
 */
export const restoreOf = Effect.fnUntraced(function* (folder: FolderRestore) {
  const { engine_snapshot_id } = folder
  const [root, path] = yield* Effect.all([realFolder(folder.path), subPathOf(folder)])
  if (!isWholeId(engine_snapshot_id)) return yield* failsBefore("There is no such snapshot.")
  const missing: Array<string> = []
  const names = path.split("/").slice(1, -1)
  for (const above of names.map((_, depth) => `/${names.slice(0, depth + 1).join("/")}`)) {
    const stats = yield* Effect.promise(() => lstat(`${root}${above}`).catch(() => undefined))
    if (stats === undefined) missing.push(above)
    else if (!stats.isDirectory()) {
      return yield* failsBefore(`What is at ${above} in the share is not a folder.`)
    }
  }
  return { folder, root, path, missing }
})

/**
 * Restores, and tells how many files of how many bytes there were to restore. What the backup's
 * patterns kept out of it, or it could not read, is left alone.
 */
export const restoreFolder = Effect.fnUntraced(function* (
  call: Call,
  folder: FolderRestore,
  onProgress: (progress: EngineProgress) => void,
) {
  const { engine_snapshot_id, is_exact } = folder
  const asked = yield* restoreOf(folder)
  const { root, path } = asked
  const what = is_exact ? yield* exactly(call, asked) : onlyAt(path)
  const words = [...restoreWords(root, folder), "--sparse", ...what]
  const restore = callLines(call, words, (line) => {
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
  // Beside each other, since opening a repository takes half a second; but a path that is not
  // there must be known before anything is deleted for it.
  if (path !== "") return yield* Effect.tap(count, restore)
  const [counted] = yield* Effect.all([count, restore], { concurrency: 2 })
  // Of most snapshots it is not there; and where it is not empty it is somebody's.
  yield* Effect.promise(() => rmdir(`${root}/${nothing_folder}`).catch(() => undefined))
  return counted
})

/** restic's share of what is done, as per cent. */
export const percentOf = (part: number) => Math.min(100, 100 * part)
