/** Lists snapshots and their contents. */
import { Effect } from "effect"
import type { FolderRestore } from "#actors/share-protection/ports/engine.ts"
import { NotFound } from "#schemas/share-protection/rejection.ts"
import { type Call, callLines, failsBefore } from "./call.ts"
import { elementSink } from "./lines.ts"
import { type Node, readNode, readSnapshot } from "./message.ts"

/**
 * Placeholder in the snapshot of an empty folder, for which restic would create no snapshot. It is
 * removed after a restore.
 */
export const nothing_folder = ".almanac-empty-folder"

/** Whether this is a complete snapshot id: restic also accepts prefixes and `latest`. */
export const isWholeId = (id: string) => /^[0-9a-f]{64}$/.test(id)

const noSnapshot = failsBefore("The snapshot does not exist.")
const noPath = new NotFound({ detail: "The backup has nothing at this path." })

/** The sub path with a leading slash; empty for the root. */
export const subPathOf = ({ sub_path }: Pick<FolderRestore, "sub_path">) => {
  const parts = (sub_path ?? "").split("/").filter((part) => part !== "")
  const is_invalid = parts.some((part) => part === "." || part === ".." || part.includes("\0"))
  return is_invalid ? Effect.fail(noPath) : Effect.succeed(parts.map((part) => `/${part}`).join(""))
}

/** The snapshots with these ids, or all. Unknown ids are left out. */
export const listSnapshots = Effect.fnUntraced(function* (
  call: Call,
  ids: ReadonlyArray<string> = [],
) {
  const found: Array<NonNullable<ReturnType<typeof readSnapshot>>> = []
  let is_whole = true
  const fail = () => {
    is_whole = false
  }
  const sink = elementSink((json) => {
    const snapshot = readSnapshot(json)
    if (snapshot === undefined) fail()
    else found.push(snapshot)
  }, fail)
  yield* call({ args: ["snapshots", "--json", "--no-lock", ...ids], sink })
  // A snapshot missing from the list would be taken for a lost backup.
  if (!is_whole) return yield* failsBefore("The repository's snapshots cannot be read.")
  return found
})

/** The record of a snapshot, without its files. */
export const findSnapshot = Effect.fnUntraced(function* (call: Call, id: string) {
  if (!isWholeId(id)) return yield* noSnapshot
  const [snapshot] = yield* listSnapshots(call, [id])
  return snapshot ?? (yield* noSnapshot)
})

/**
 * Passes on each file, folder and link at and below a path of the snapshot, in tree order; an empty
 * path means everything. Fails if nothing is at the path.
 */
export const listNodes = Effect.fnUntraced(function* (
  call: Call,
  id: string,
  path: string,
  onNode: (node: Node) => void,
) {
  if (!isWholeId(id)) return yield* noSnapshot
  let is_found = path === ""
  const args = ["ls", "--json", "--no-lock", ...(path === "" ? [id] : ["--recursive", id, path])]
  const ended = yield* callLines(call, args, (line) => {
    const node = readNode(line)
    if (node === undefined || node.path === `/${nothing_folder}`) return
    if (path !== "" && node.path !== path && !node.path.startsWith(`${path}/`)) return
    is_found = true
    onNode(node)
  }).pipe(
    Effect.catchTag("EngineFailed", (failure) =>
      Effect.fail(/failed to load snapshot/.test(failure.detail) ? noSnapshot : failure),
    ),
  )
  if (!is_found) return yield* noPath
  return ended
})

/** Counts files and bytes at and below a path. */
export const countFiles = Effect.fnUntraced(function* (call: Call, id: string, path: string) {
  if (path === "") {
    const { summary } = yield* findSnapshot(call, id)
    // Snapshots of restic before 0.17 have no summary.
    if (summary) {
      return { files: summary.total_files_processed, bytes: summary.total_bytes_processed }
    }
  }
  let files = 0
  let bytes = 0
  yield* listNodes(call, id, path, ({ type, size }) => {
    if (type !== "file") return
    files++
    bytes += size
  })
  return { files, bytes }
})
