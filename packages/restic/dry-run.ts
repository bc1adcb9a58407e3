/** Dry runs of exact restores. */
import { Effect } from "effect"
import type { FolderRestore } from "#actors/share-protection/ports/engine.ts"
import { type Call, callLines, codes, failsBefore } from "./call.ts"
import { readNode, readStep } from "./message.ts"
import type { Ended } from "./process.ts"
import { exactArgs, pathAndParents, type Scope, scopeOf, sparedOf } from "./scope.ts"

/** Maximum number of actions, folders and links in a plan: about 200 MB. */
export const entries_max = 1_000_000
/**
 * Maximum number of spared folders and of all their characters: restic's arguments are limited to 2
 * MiB.
 */
const spared_max = 5_000
const spared_chars_max = 300_000

/** Maximum length of restic's message in an error. */
const why_chars_max = 200

export const tooMany = failsBefore(`A plan has at most ${entries_max} entries.`)
const tooManySpared = failsBefore("Too many new folders contain files that the backup excluded.")

interface ExactRestore {
  readonly folder: FolderRestore
  /** The real path of the folder. */
  readonly root: string
  /** The path below it that is restored. */
  readonly path: string
}

/** The scope of the snapshot; undefined if it is unknown, or if everything may be unread. */
const knownScope = ({ engine_snapshot_id, unread = [] }: FolderRestore, call: Call) =>
  unread.includes("/") ? Effect.undefined : scopeOf(call, engine_snapshot_id)

/** Dry run of an exact restore. Files that the backup left out are spared. */
export const dryRun = Effect.fnUntraced(function* (call: Call, restore: ExactRestore) {
  const scope = yield* knownScope(restore.folder, call)
  return yield* dryRunSparing(call, restore, scope, [])
})

/** restic's arguments for an exact restore. */
export const exactRestoreArgs = Effect.fnUntraced(function* (call: Call, restore: ExactRestore) {
  const { unread = [] } = restore.folder
  const scope = yield* knownScope(restore.folder, call)
  if (scope === undefined || (scope.exclude_patterns.length === 0 && unread.length === 0)) {
    return exactArgs(scope, restore.path)
  }
  // Existing files are not read for this.
  return (yield* dryRunSparing(call, restore, scope, ["--overwrite=never"])).args
})

/** The arguments, the files that restic would write, and the paths that it would delete. */
const dryRunSparing = Effect.fnUntraced(function* (
  call: Call,
  restore: ExactRestore,
  scope: Scope | undefined,
  more: ReadonlyArray<string>,
) {
  // restic must not enter folders that it may still be unable to read, but must restore what the
  // snapshot has of them.
  const absent = scope === undefined ? [] : yield* absentOf(call, restore.folder)
  const args = exactArgs(scope, restore.path, absent)
  const { touched, deleted } = yield* run(call, restore, [...args, ...more])
  const spared = scope === undefined ? [] : sparedOf(scope, deleted, restore.folder.unread)
  if (spared.length === 0) return { touched, deleted, args }
  if (spared.length > spared_max || spared.join("").length > spared_chars_max) {
    return yield* tooManySpared
  }
  const tops = new Set(spared)
  const isSpared = (path: string) => pathAndParents(path).some((one) => tops.has(one))
  return {
    touched,
    deleted: deleted.filter((path) => !isSpared(path)),
    args: exactArgs(scope, restore.path, [...absent, ...spared]),
  }
})

/** The unread paths that are missing from the snapshot. */
const absentOf = Effect.fnUntraced(function* (
  call: Call,
  { engine_snapshot_id, unread = [] }: FolderRestore,
) {
  const absent = new Set(unread)
  if (absent.size === 0) return []
  const args = ["ls", "--json", "--no-lock", engine_snapshot_id, ...absent]
  yield* callLines(call, args, (line) => {
    absent.delete(readNode(line)?.path ?? "")
  })
  return [...absent]
})

const run = Effect.fnUntraced(function* (
  call: Call,
  { folder, root }: ExactRestore,
  args: ReadonlyArray<string>,
) {
  const touched = new Set<string>()
  const deleted: Array<string> = []
  let is_whole = true
  const onLine = (line: string) => {
    const step = readStep(line)
    if (step === undefined || step.action === "unchanged") return
    if (touched.size + deleted.length > entries_max) is_whole = false
    else if (step.action === "deleted") deleted.push(step.item.slice(root.length))
    else touched.add(step.item)
  }
  const all_args = [...restoreArgs(root, folder), ...args, "--dry-run", "-vv"]
  const ended = yield* callLines(call, all_args, onLine, {}, codes.failed)
  if (ended.code === codes.failed && !isOnlyReplacedFile(ended)) {
    const [why = "unknown"] = ended.errors
    return yield* failsBefore(`The dry run of the restore failed: ${why.slice(0, why_chars_max)}`)
  }
  return is_whole ? { touched, deleted } : yield* tooMany
})

/** A dry run fails on a file that a folder will replace; the restore itself does not. */
const isOnlyReplacedFile = ({ errors, errors_count }: Ended) =>
  errors_count > 0 &&
  errors_count === errors.length &&
  errors.every((error) => /readdirnames failed: .*: not a directory$/s.test(error))

/** Arguments of every restore. */
export const restoreArgs = (root: string, { engine_snapshot_id }: FolderRestore) => [
  "restore",
  "--json",
  `--target=${root}`,
  engine_snapshot_id,
]
