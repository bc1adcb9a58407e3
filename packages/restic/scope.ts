/**
 * What of a share a snapshot speaks for. What its backup's patterns kept out is not in it, and yet
 * is nothing that an exact restore may delete.
 */
import { Effect, Option, Schema } from "effect"
import type { FolderBackup } from "#actors/share-protection/ports/engine.ts"
import { type Call, callLines } from "./call.ts"
import { findSnapshot, nothing_folder } from "./listing.ts"
import { readNode } from "./message.ts"
import { fitter, literal, patternBelow, patternsIn } from "./pattern.ts"

/** The patterns of a snapshot's backup. */
export type Scope = Pick<FolderBackup, "include_patterns" | "exclude_patterns">

const everything: Scope = { include_patterns: [], exclude_patterns: [] }

const Recorded = Schema.Struct({
  include_patterns: Schema.Array(Schema.String),
  exclude_patterns: Schema.Array(Schema.String),
})
const decode = Schema.decodeUnknownOption(Schema.fromJsonString(Recorded))

const tag_start = "patterns="

/** The tag by which a snapshot records its scope: in base64, since restic parts tags at commas. */
export const scopeTag = ({ include_patterns, exclude_patterns }: Scope) =>
  tag_start +
  Buffer.from(JSON.stringify({ include_patterns, exclude_patterns })).toString("base64url")

export const isScopeTag = (tag: string) => tag.startsWith(tag_start)

/** The scope of a snapshot; undefined where it cannot be told, so that nothing may be deleted. */
export const scopeOf = Effect.fnUntraced(function* (call: Call, id: string) {
  const snapshot = yield* findSnapshot(call, id)
  const tags = snapshot.tags ?? []
  const recorded = tags.find(isScopeTag)
  if (recorded !== undefined) {
    const json = Buffer.from(recorded.slice(tag_start.length), "base64url").toString()
    return Option.getOrUndefined(decode(json))
  }
  // Only a policy has patterns.
  if (!tags.some((tag) => tag.startsWith("policy="))) return everything
  return yield* formerScope(call, snapshot)
})

type Snapshot = Effect.Success<ReturnType<typeof findSnapshot>>

/** Of a snapshot before there were such tags: what restic itself recorded of what it was told. */
const formerScope = Effect.fnUntraced(function* (call: Call, { id, paths, excludes }: Snapshot) {
  const [root = "", ...more] = paths
  const start = `${literal(root)}/`
  if (more.length > 0 || !excludes.every((exclude) => exclude.startsWith(start))) return undefined
  const at_root = new Set<string>()
  yield* callLines(call, ["ls", "--json", "--no-lock", id, "/"], (line) => {
    const node = readNode(line)
    if (node !== undefined && at_root.size < 2) at_root.add(node.path.slice(1))
  })
  // What was included by its name is alone there, and its name is in the path.
  const [only = "", ...others] = at_root
  const is_named = only === nothing_folder || root.split("/").includes(only)
  if (others.length === 0 && is_named) return undefined
  const exclude_patterns = excludes.map((exclude) => exclude.slice(start.length - 1))
  return { include_patterns: [], exclude_patterns } satisfies Scope
})

/** The words by which restic restores nothing but what is at this path; empty: all. */
export const onlyAt = (path: string) => (path === "" ? [] : [`--include=${literal(path)}`])

/**
 * The words by which restic restores what is at this path, and deletes what else the scope has
 * there, but for the spared paths. It takes no excludes beside includes, but includes that begin
 * with `!`, of which the last one that matches counts.
 */
export const exactWords = (
  scope: Scope | undefined,
  path: string,
  spared: ReadonlyArray<string> = [],
): ReadonlyArray<string> => {
  if (scope === undefined) return onlyAt(path)
  const { include_patterns, exclude_patterns } = scope
  const out = exclude_patterns.map((pattern) => patternBelow("", pattern))
  // restic tells a name that is no text with this sign for each byte that is none.
  out.push(...spared.map((one) => literal(one).replaceAll("\uFFFD", "?")))
  if (include_patterns.length === 0 && path === "") {
    return ["--delete", ...out.map((pattern) => `--exclude=${pattern}`)]
  }
  const included =
    include_patterns.length === 0 ? [literal(path)] : patternsIn(include_patterns, path)
  const words = [...included, ...out.map((pattern) => `!${pattern}`)]
  return ["--delete", ...words.map((pattern) => `--include=${pattern}`)]
}

/**
 * Of what restic would delete, the topmost folders that hold something excluded or unread: restic
 * deletes what is not in the snapshot with all that is in it.
 */
export const sparedOf = (
  { exclude_patterns }: Scope,
  deleted: ReadonlyArray<string>,
  unread: ReadonlyArray<string> = [],
): ReadonlyArray<string> => {
  const isExcluded = fitter(exclude_patterns)
  const not_read = new Set(unread)
  const isOut = (path: string) =>
    aboves(path).some((above) => not_read.has(above)) ||
    isExcluded(path.split("/").slice(1)) === "matched"
  const all = new Set(deleted)
  const spared = new Set<string>()
  for (const path of deleted) {
    if (!isOut(path)) continue
    spared.add(aboves(path).find((above) => all.has(above)) ?? path)
  }
  return [...spared]
}

/** The folders above a path from the topmost on, and the path itself. */
export const aboves = (path: string) => {
  const parts = path.split("/").slice(1)
  return parts.map((_, depth) => `/${parts.slice(0, depth + 1).join("/")}`)
}
