/** An exact restore as restic rehearses it: told, and nothing touched. */
import { Effect } from "effect"
import type { FolderRestore } from "#actors/share-protection/ports/engine.ts"
import { type Call, callLines, codes, failsBefore } from "./call.ts"
import { readNode, readStep } from "./message.ts"
import type { Ended } from "./process.ts"
import { aboves, exactWords, type Scope, scopeOf, sparedOf } from "./scope.ts"

/** Actions, folders and links of one plan, all held at once: some 200 MB. */
export const entries_max = 1_000_000
/** Folders that are spared, by their names, and all their characters: restic's words are 2 MiB. */
const spared_max = 5_000
const spared_chars_max = 300_000

/** Characters of restic's own words that are told on. */
const why_chars_max = 200

export const tooMany = failsBefore(`A plan has at most ${entries_max} entries.`)
const tooManySpared = failsBefore("Too many new folders hold something that the backup left out.")

interface Rehearsed {
  readonly folder: FolderRestore
  /** The folder's own path. */
  readonly root: string
  /** What is restored, below it. */
  readonly path: string
}

/** What the snapshot speaks for; undefined where nobody knows, or where all may be unread. */
const spokenFor = ({ engine_snapshot_id, unread = [] }: FolderRestore, call: Call) =>
  unread.includes("/") ? Effect.undefined : scopeOf(call, engine_snapshot_id)

/** How an exact restore goes. What the backup left out is spared. */
export const rehearse = Effect.fnUntraced(function* (call: Call, asked: Rehearsed) {
  const scope = yield* spokenFor(asked.folder, call)
  return yield* sparing(call, asked, scope, [])
})

/** The words for an exact restore. */
export const exactly = Effect.fnUntraced(function* (call: Call, asked: Rehearsed) {
  const { unread = [] } = asked.folder
  const scope = yield* spokenFor(asked.folder, call)
  if (scope === undefined || (scope.exclude_patterns.length === 0 && unread.length === 0)) {
    return exactWords(scope, asked.path)
  }
  // Of the files that are there none is read for it.
  return (yield* sparing(call, asked, scope, ["--overwrite=never"])).words
})

/** The words, the files that restic would write by them, and what it would delete. */
const sparing = Effect.fnUntraced(function* (
  call: Call,
  asked: Rehearsed,
  scope: Scope | undefined,
  more: ReadonlyArray<string>,
) {
  // restic is not to look into what it may still not read, but to restore what it has of it.
  const absent = scope === undefined ? [] : yield* absentOf(call, asked.folder)
  const words = exactWords(scope, asked.path, absent)
  const { touched, deleted } = yield* run(call, asked, [...words, ...more])
  const spared = scope === undefined ? [] : sparedOf(scope, deleted, asked.folder.unread)
  if (spared.length === 0) return { touched, deleted, words }
  if (spared.length > spared_max || spared.join("").length > spared_chars_max) {
    return yield* tooManySpared
  }
  const tops = new Set(spared)
  const isSpared = (path: string) => aboves(path).some((one) => tops.has(one))
  return {
    touched,
    deleted: deleted.filter((path) => !isSpared(path)),
    words: exactWords(scope, asked.path, [...absent, ...spared]),
  }
})

/** Of what the backup could not read, what is not in its snapshot at all. */
const absentOf = Effect.fnUntraced(function* (
  call: Call,
  { engine_snapshot_id, unread = [] }: FolderRestore,
) {
  const absent = new Set(unread)
  if (absent.size === 0) return []
  const words = ["ls", "--json", "--no-lock", engine_snapshot_id, ...absent]
  yield* callLines(call, words, (line) => {
    absent.delete(readNode(line)?.path ?? "")
  })
  return [...absent]
})

const run = Effect.fnUntraced(function* (
  call: Call,
  { folder, root }: Rehearsed,
  words: ReadonlyArray<string>,
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
  const told = [...restoreWords(root, folder), ...words, "--dry-run", "-vv"]
  const ended = yield* callLines(call, told, onLine, {}, codes.failed)
  if (ended.code === codes.failed && !isOnlyInTheWay(ended)) {
    const [why = "unknown"] = ended.errors
    return yield* failsBefore(`The restore cannot be rehearsed: ${why.slice(0, why_chars_max)}`)
  }
  return is_whole ? { touched, deleted } : yield* tooMany
})

/** A rehearsal stumbles over a file where there will be a folder; the restore itself does not. */
const isOnlyInTheWay = ({ errors, errors_count }: Ended) =>
  errors_count > 0 &&
  errors_count === errors.length &&
  errors.every((error) => /readdirnames failed: .*: not a directory$/s.test(error))

/** What every restore says to restic. */
export const restoreWords = (root: string, { engine_snapshot_id }: FolderRestore) => [
  "restore",
  "--json",
  `--target=${root}`,
  engine_snapshot_id,
]
