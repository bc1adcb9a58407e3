/**
 * What an exact restore would do, by restic's own rehearsal of it.
 *
 * restic compares the content of files, and says of every folder and link that it would restore
 * it. Whether one of these is as it was we see ourselves: a folder where it is a folder, a link by
 * its time, which a restore sets.
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
import { listNodes } from "./listing.ts"
import type { Node } from "./message.ts"
import { entries_max, rehearse, tooMany } from "./rehearsal.ts"
import { restoreOf } from "./restore.ts"

/** Files whose status is asked for at once. */
const looks_max = 32

const unreadable = failsBefore("The folder cannot be read.")

export const planRestore = Effect.fnUntraced(function* (call: Call, folder: FolderRestore) {
  const asked = yield* restoreOf(folder)
  const { root, path, missing } = asked
  const rehearsal = yield* rehearse(call, asked)
  const looked: Array<Node> = []
  let unchanged = 0
  yield* listNodes(call, folder.engine_snapshot_id, path, (node) => {
    if (node.type === "file" && !rehearsal.touched.has(node.path)) unchanged++
    else if (looked.length <= entries_max) looked.push(node)
  })
  if (looked.length + rehearsal.deleted.length > entries_max) return yield* tooMany
  const actions: Array<PlannedAction> = [
    ...missing.map((above) => ({ action: "created", path: above }) as const),
    ...rehearsal.deleted.map((extra) => ({ action: "deleted", path: extra }) as const),
  ]
  for (let at = 0; at < looked.length; at += looks_max) {
    const found = yield* Effect.tryPromise({
      try: () => Promise.all(looked.slice(at, at + looks_max).map((node) => look(root, node))),
      catch: () => unreadable,
    })
    for (const one of found) if (one.length === 0) unchanged++
    actions.push(...found.flat())
  }
  return planOf(actions, unchanged)
})

/** What an exact restore would do where this goes; nothing where it is as it was. */
const look = async (root: string, node: Node): Promise<ReadonlyArray<PlannedAction>> => {
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

/** What goes with a folder that a file takes the place of. */
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
    // Neither has a zero byte in it.
    hash.update(`${action}\0${path}\0`)
    counts[action]++
  }
  const listed = actions.slice(0, planned_actions_max)
  return { hash: hash.digest("hex"), ...counts, unchanged, actions: listed }
}
