/** Backs up a folder, which becomes the root of the snapshot. */
import { mkdir, readdir } from "node:fs/promises"
import { join } from "node:path"
import { Effect } from "effect"
import {
  EngineFailed,
  type EngineProgress,
  type FolderBackup,
  type NewSnapshot,
} from "#actors/share-protection/ports/engine.ts"
import { type Call, callLines, codes, failsBefore } from "./call.ts"
import { includedPaths } from "./include.ts"
import { nothing_folder } from "./listing.ts"
import { readBackupSummary, readStatus } from "./message.ts"
import { patternBelow } from "./pattern.ts"
import { percentOf, realFolder } from "./restore.ts"
import { scopeTag } from "./scope.ts"
import { unreadIn } from "./unread.ts"

type OnPart = (progress: EngineProgress) => void

/** Backs up the folder. restic runs inside it, because it stores paths as they are given. */
export const backUpFolder = Effect.fnUntraced(function* (
  call: Call,
  cache_dir: string,
  backup: FolderBackup,
  onPart: OnPart,
) {
  const folder = yield* realFolder(backup.path)
  const { include_patterns, exclude_patterns } = backup
  const input = include_patterns.length === 0 ? undefined : yield* includedPaths(folder, backup)
  const excludes = exclude_patterns.map((pattern) => `--exclude=${patternBelow(folder, pattern)}`)
  const args = argsOf(backup)
  if (input?.length === 0) return yield* backUpNothing(call, cache_dir, args)
  const made =
    input === undefined
      ? yield* run(call, [...args, ...excludes, "."], { folder }, onPart)
      : yield* run(call, [...args, ...excludes, "--files-from-raw=-"], { folder, input }, onPart)
  if (made !== undefined) return made
  yield* Effect.tryPromise({
    try: () => readdir(folder),
    catch: () => failsBefore("The folder cannot be read."),
  })
  return yield* backUpNothing(call, cache_dir, args)
})

/** Snapshots of a share are grouped by host only, wherever its folder was mounted. */
const argsOf = ({ host, tags, ...scope }: FolderBackup) => [
  "backup",
  "--json",
  `--host=${host}`,
  "--group-by=host",
  ...[...tags, scopeTag(scope)].map((tag) => `--tag=${tag}`),
]

/** Returns undefined if there was nothing to back up: restic then creates no snapshot. */
const run = Effect.fnUntraced(function* (
  call: Call,
  args: ReadonlyArray<string>,
  from: { readonly folder: string; readonly input?: Buffer },
  onPart: OnPart,
) {
  let summary: ReturnType<typeof readBackupSummary>
  const onLine = (line: string) => {
    const status = readStatus(line)
    if (status === undefined) summary = readBackupSummary(line) ?? summary
    else {
      const { percent_done, bytes_done, total_bytes } = status
      onPart({ percent: percentOf(percent_done), bytes_done, bytes_total: total_bytes })
    }
  }
  const ended = yield* callLines(call, args, onLine, from, codes.partial).pipe(
    Effect.catchTag("EngineFailed", (failure) =>
      /snapshot is empty$/.test(failure.detail) ? Effect.succeed(undefined) : Effect.fail(failure),
    ),
  )
  if (ended === undefined) return undefined
  if (summary === undefined) {
    const detail = "restic did not report the id of its snapshot."
    return yield* new EngineFailed({ detail, wrote_nothing: false })
  }
  return {
    engine_snapshot_id: summary.snapshot_id,
    taken_at: instantOf(summary.backup_start),
    partial: ended.code === codes.partial,
    unread: ended.code === codes.partial ? unreadIn(from.folder, ended) : [],
    bytes: summary.total_bytes_processed,
    stored_bytes: summary.data_added_packed,
    files: summary.total_files_processed,
  } satisfies NewSnapshot
})

/** Creates a snapshot that contains only the placeholder of an empty folder. */
const backUpNothing = Effect.fnUntraced(function* (
  call: Call,
  cache_dir: string,
  args: ReadonlyArray<string>,
) {
  const folder = join(cache_dir, "nothing")
  yield* Effect.tryPromise({
    try: () => mkdir(join(folder, nothing_folder), { recursive: true }),
    catch: () => failsBefore("The cache folder cannot be written."),
  })
  const made = yield* run(call, [...args, "."], { folder }, () => {})
  return made ?? (yield* failsBefore("restic made no snapshot of an empty folder."))
})

/** Converts a time of any zone and precision to RFC 3339 in UTC with milliseconds. */
export const instantOf = (time: string) => new Date(time).toISOString()
