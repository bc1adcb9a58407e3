/**
 * Plans an exact restore from restic's dry run.
 *
 * restic compares the contents of files, but reports every folder and link as restored. So this
 * module checks them itself: folders by their type, links by their modification time, which a
 * restore sets.
 */
import { createHash } from "node:crypto"
import { lstat, readdir } from "node:fs/promises"
import { Effect } from "effect"
import {
  type FolderRestore,
  type PlannedAction,
  planned_actions_max,
  type RestorePlan,
} from "#actors/share-protection/ports/engine.ts"
import { type Call, failsBefore } from "./call.ts"
import { dryRun, entries_max, tooMany } from "./dry-run.ts"
import { listNodes } from "./listing.ts"
import type { Node } from "./message.ts"
import { restoreOf } from "./restore.ts"

/** Maximum number of concurrent `lstat` calls. */
const concurrent_max = 32

const unreadable = failsBefore("The folder cannot be read.")

export const planRestore = Effect.fnUntraced(function* (call: Call, folder: FolderRestore) {
  const restore = yield* restoreOf(folder)
  const { root, path, missing } = restore
  const dry_run = yield* dryRun(call, restore)
  const nodes: Array<Node> = []
  let unchanged = 0
  yield* listNodes(call, folder.engine_snapshot_id, path, (node) => {
    if (node.type === "file" && !dry_run.touched.has(node.path)) unchanged++
    else if (nodes.length <= entries_max) nodes.push(node)
  })
  if (nodes.length + dry_run.deleted.length > entries_max) return yield* tooMany
  const actions: Array<PlannedAction> = [
    ...missing.map((above) => ({ action: "created", path: above }) as const),
    ...dry_run.deleted.map((extra) => ({ action: "deleted", path: extra }) as const),
  ]
  for (let at = 0; at < nodes.length; at += concurrent_max) {
    const found = yield* Effect.tryPromise({
      try: () =>
        Promise.all(nodes.slice(at, at + concurrent_max).map((node) => actionsAt(root, node))),
      catch: () => unreadable,
    })
    for (const one of found) if (one.length === 0) unchanged++
    actions.push(...found.flat())
  }
  return planOf(actions, unchanged)
})

/** The actions of an exact restore at one node; none if it is unchanged. */
const actionsAt = async (root: string, node: Node): Promise<ReadonlyArray<PlannedAction>> => {
  const { path, type, size, mtime } = node
  const stats = await lstat(`${root}${path}`, { bigint: true }).catch(() => undefined)
  if (stats === undefined) return [{ action: "created", path }]
  const updated = { action: "updated", path } as const
  if (type === "dir") return stats.isDirectory() ? [] : [updated]
  if (stats.isDirectory()) return [updated, ...(await deletedBelow(root, path))]
  const is_kind = type === "symlink" ? stats.isSymbolicLink() : (type === "file") === stats.isFile()
  const is_same = is_kind && stats.mtimeNs === nanoseconds(mtime)
  return is_same && (type !== "file" || stats.size === BigInt(size)) ? [] : [updated]
}

/** The contents of a folder that a file replaces. */
const deletedBelow = async (root: string, path: string): Promise<Array<PlannedAction>> => {
  const entries = await readdir(`${root}${path}`, { recursive: true, withFileTypes: true })
  return entries.map(({ parentPath, name }) => ({
    action: "deleted",
    path: `${parentPath}/${name}`.slice(root.length),
  }))
}

const nanoseconds = (time: string) => {
  const [, seconds, fraction = "", zone] = /^(.*?)(?:\.(\d+))?(Z|[+-]\d\d:\d\d)$/.exec(time) ?? []
  const milliseconds = Date.parse(`${seconds}${zone}`)
  if (Number.isNaN(milliseconds)) return undefined
  return BigInt(milliseconds) * 1_000_000n + BigInt(fraction.padEnd(9, "0"))
}

const planOf = (actions: Array<PlannedAction>, unchanged: number): RestorePlan => {
  actions.sort((one, other) => (one.path < other.path ? -1 : 1))
  const hash = createHash("sha256")
  const counts = { created: 0, updated: 0, deleted: 0 }
  for (const { action, path } of actions) {
    // Neither contains a zero byte.
    hash.update(`${action}\0${path}\0`)
    counts[action]++
  }
  const listed = actions.slice(0, planned_actions_max)
  return { hash: hash.digest("hex"), ...counts, unchanged, actions: listed }
}
