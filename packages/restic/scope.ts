/**
 * The scope of a snapshot: which files of a share its backup covered. An exact restore must not
 * delete files that the patterns kept out of the backup.
 */
import { Effect, Option, Schema } from "effect"
import type { FolderBackup } from "#actors/share-protection/ports/engine.ts"
import { type Call, callLines } from "./call.ts"
import { findSnapshot, nothing_folder } from "./listing.ts"
import { readNode } from "./message.ts"
import { literal, makeMatcher, patternBelow, patternsIn } from "./pattern.ts"

/** The patterns of a snapshot's backup. */
export type Scope = Pick<FolderBackup, "include_patterns" | "exclude_patterns">

const everything: Scope = { include_patterns: [], exclude_patterns: [] }

const Recorded = Schema.Struct({
  include_patterns: Schema.Array(Schema.String),
  exclude_patterns: Schema.Array(Schema.String),
})
const decode = Schema.decodeUnknownOption(Schema.fromJsonString(Recorded))

const tag_start = "patterns="

/** The tag that records the scope of a snapshot, in base64 because restic splits tags at commas. */
export const scopeTag = ({ include_patterns, exclude_patterns }: Scope) =>
  tag_start +
  Buffer.from(JSON.stringify({ include_patterns, exclude_patterns })).toString("base64url")

export const isScopeTag = (tag: string) => tag.startsWith(tag_start)

/** The scope of a snapshot; undefined if it is unknown, so that nothing may be deleted. */
export const scopeOf = Effect.fnUntraced(function* (call: Call, id: string) {
  const snapshot = yield* findSnapshot(call, id)
  const tags = snapshot.tags ?? []
  const recorded = tags.find(isScopeTag)
  if (recorded !== undefined) {
    const json = Buffer.from(recorded.slice(tag_start.length), "base64url").toString()
    return Option.getOrUndefined(decode(json))
  }
  // Only policies have patterns.
  if (!tags.some((tag) => tag.startsWith("policy="))) return everything
  return yield* scopeFromExcludes(call, snapshot)
})

type Snapshot = Effect.Success<ReturnType<typeof findSnapshot>>

/** The scope of a snapshot without the tag, from the excludes that restic itself records. */
const scopeFromExcludes = Effect.fnUntraced(function* (
  call: Call,
  { id, paths, excludes }: Snapshot,
) {
  const [root = "", ...more] = paths
  const start = `${literal(root)}/`
  if (more.length > 0 || !excludes.every((exclude) => exclude.startsWith(start))) return undefined
  const at_root = new Set<string>()
  yield* callLines(call, ["ls", "--json", "--no-lock", id, "/"], (line) => {
    const node = readNode(line)
    if (node !== undefined && at_root.size < 2) at_root.add(node.path.slice(1))
  })
  // An included path would be the only entry at the root, and part of the recorded path.
  const [only = "", ...others] = at_root
  const is_named = only === nothing_folder || root.split("/").includes(only)
  if (others.length === 0 && is_named) return undefined
  const exclude_patterns = excludes.map((exclude) => exclude.slice(start.length - 1))
  return { include_patterns: [], exclude_patterns } satisfies Scope
})

/** Arguments that restrict a restore to this path; empty for everything. */
export const onlyAt = (path: string) => (path === "" ? [] : [`--include=${literal(path)}`])

/**
 * Arguments that restore this path and delete everything else in the scope, except the spared
 * paths. restic does not combine excludes with includes, but accepts includes that begin with `!`;
 * the last match wins.
 */
export const exactArgs = (
  scope: Scope | undefined,
  path: string,
  spared: ReadonlyArray<string> = [],
): ReadonlyArray<string> => {
  if (scope === undefined) return onlyAt(path)
  const { include_patterns, exclude_patterns } = scope
  const out = exclude_patterns.map((pattern) => patternBelow("", pattern))
  // restic prints this character for each byte that is not valid UTF-8.
  out.push(...spared.map((one) => literal(one).replaceAll("\uFFFD", "?")))
  if (include_patterns.length === 0 && path === "") {
    return ["--delete", ...out.map((pattern) => `--exclude=${pattern}`)]
  }
  const included =
    include_patterns.length === 0 ? [literal(path)] : patternsIn(include_patterns, path)
  const args = [...included, ...out.map((pattern) => `!${pattern}`)]
  return ["--delete", ...args.map((pattern) => `--include=${pattern}`)]
}

/**
 * The topmost folders to be deleted that contain excluded or unread files, because restic deletes
 * whole folders.
 */
export const sparedOf = (
  { exclude_patterns }: Scope,
  deleted: ReadonlyArray<string>,
  unread: ReadonlyArray<string> = [],
): ReadonlyArray<string> => {
  const isExcluded = makeMatcher(exclude_patterns)
  const not_read = new Set(unread)
  const isOut = (path: string) =>
    pathAndParents(path).some((parent) => not_read.has(parent)) ||
    isExcluded(path.split("/").slice(1)) === "matched"
  const all = new Set(deleted)
  const spared = new Set<string>()
  for (const path of deleted) {
    if (!isOut(path)) continue
    spared.add(pathAndParents(path).find((parent) => all.has(parent)) ?? path)
  }
  return [...spared]
}

/** The path and its parent folders, topmost first. */
export const pathAndParents = (path: string) => {
  const parts = path.split("/").slice(1)
  return parts.map((_, depth) => `/${parts.slice(0, depth + 1).join("/")}`)
}
