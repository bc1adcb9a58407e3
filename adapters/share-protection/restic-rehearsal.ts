/** An exact restore as restic rehearses it: told, and nothing touched. */
import { Effect } from "effect"
import type { FolderRestore } from "#actors/share-protection/engine.ts"
import { type Call, callLines, codes, failsBefore } from "#adapters/share-protection/restic-call.ts"
import { readStep } from "#adapters/share-protection/restic-message.ts"
import type { Ended } from "#adapters/share-protection/restic-process.ts"
import {
  aboves,
  exactWords,
  type Scope,
  scopeOf,
  sparedOf,
} from "#adapters/share-protection/restic-scope.ts"

/** Actions, folders and links of one plan, all held at once: some 200 MB. */
export const entries_max = 1_000_000
/** Folders that are spared, by their names, and all their characters: restic's words are 2 MiB. */
const spared_max = 5_000
const spared_chars_max = 300_000

/** Characters of restic's own words that are told on. */
const why_chars_max = 200

export const tooMany = failsBefore(`A plan has at most ${entries_max} entries.`)
const tooManySpared = failsBefore(
  "Too many new folders hold something that the backup's patterns left out.",
)

interface Rehearsed {
  readonly folder: FolderRestore
  /** The folder's own path. */
  readonly root: string
  /** What is restored, below it. */
  readonly path: string
}

/** How an exact restore goes. What the backup's patterns kept out is spared. */
export const rehearse = Effect.fnUntraced(function* (call: Call, asked: Rehearsed) {
  const scope = yield* scopeOf(call, asked.folder.engine_snapshot_id)
  return yield* sparing(call, asked, scope, [])
})

/** The words for an exact restore. */
export const exactly = Effect.fnUntraced(function* (call: Call, asked: Rehearsed) {
  const scope = yield* scopeOf(call, asked.folder.engine_snapshot_id)
  if (scope === undefined || scope.exclude_patterns.length === 0) {
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
  const words = exactWords(scope, asked.path)
  const { touched, deleted } = yield* run(call, asked, [...words, ...more])
  const spared = scope === undefined ? [] : sparedOf(scope, deleted)
  if (spared.length === 0) return { touched, deleted, words }
  if (spared.length > spared_max || spared.join("").length > spared_chars_max) {
    return yield* tooManySpared
  }
  const tops = new Set(spared)
  const isSpared = (path: string) => aboves(path).some((one) => tops.has(one))
  return {
    touched,
    deleted: deleted.filter((path) => !isSpared(path)),
    words: exactWords(scope, asked.path, spared),
  }
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
