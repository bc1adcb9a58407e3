/** Backups by restic: of a folder, which becomes the snapshot's root. */
import { mkdir, readdir } from "node:fs/promises"
import { join } from "node:path"
import { Effect } from "effect"
import {
  EngineFailed,
  type EngineProgress,
  type FolderBackup,
  type SnapshotMade,
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

/** Backs the folder up. Working in it makes it the root: restic keeps paths as they are given. */
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
  const words = wordsOf(backup)
  if (input?.length === 0) return yield* backUpNothing(call, cache_dir, words)
  const made =
    input === undefined
      ? yield* run(call, [...words, ...excludes, "."], { folder }, onPart)
      : yield* run(call, [...words, ...excludes, "--files-from-raw=-"], { folder, input }, onPart)
  if (made !== undefined) return made
  yield* Effect.tryPromise({
    try: () => readdir(folder),
    catch: () => failsBefore("The folder cannot be read."),
  })
  return yield* backUpNothing(call, cache_dir, words)
})

/** What is in the folder of one share is of one line, wherever it was mounted. */
const wordsOf = ({ host, tags, ...scope }: FolderBackup) => [
  "backup",
  "--json",
  `--host=${host}`,
  "--group-by=host",
  ...[...tags, scopeTag(scope)].map((tag) => `--tag=${tag}`),
]

/** Undefined where there was nothing to back up, of which restic makes no snapshot. */
const run = Effect.fnUntraced(function* (
  call: Call,
  words: ReadonlyArray<string>,
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
  const ended = yield* callLines(call, words, onLine, from, codes.partial).pipe(
    Effect.catchTag("EngineFailed", (failure) =>
      /snapshot is empty$/.test(failure.detail) ? Effect.succeed(undefined) : Effect.fail(failure),
    ),
  )
  if (ended === undefined) return undefined
  if (summary === undefined) {
    const detail = "restic did not say which snapshot it made."
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
  } satisfies SnapshotMade
})

/** A snapshot of a folder that has only what stands for nothing. */
const backUpNothing = Effect.fnUntraced(function* (
  call: Call,
  cache_dir: string,
  words: ReadonlyArray<string>,
) {
  const folder = join(cache_dir, "nothing")
  yield* Effect.tryPromise({
    try: () => mkdir(join(folder, nothing_folder), { recursive: true }),
    catch: () => failsBefore("The cache folder cannot be written."),
  })
  const made = yield* run(call, [...words, "."], { folder }, () => {})
  return made ?? (yield* failsBefore("restic makes no snapshot of an empty folder."))
})

/** RFC 3339 in UTC with milliseconds, of a time in whatever zone and precision. */
export const instantOf = (time: string) => new Date(time).toISOString()
