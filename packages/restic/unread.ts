/**
 * The paths that a backup could not read, from restic's errors. An exact restore must not delete
 * them.
 */
import { posix } from "node:path"
import { unread_bytes_max, unread_max } from "#schemas/share-protection/backup.ts"
import type { Ended } from "./process.ts"
import { pathAndParents } from "./scope.ts"

const everything = ["/"]

/**
 * Unread paths below the folder, summarized by their parent folders if there are too many. If
 * restic reported more errors than were kept, or no path, the result is the whole folder.
 */
export const unreadIn = (folder: string, { items, errors_count }: Ended): ReadonlyArray<string> => {
  if (items.length === 0 || items.length < errors_count) return everything
  const paths = items.map((item) => below(folder, item))
  return paths.includes(undefined) ? everything : bounded(paths.flatMap((path) => path ?? []))
}

/** restic reports paths relative to its working directory, or absolute. */
const below = (folder: string, item: string) => {
  if (item === "") return undefined
  if (!item.startsWith("/")) return posix.join("/", item)
  if (item === folder) return "/"
  return item.startsWith(`${folder}/`) ? item.slice(folder.length) : undefined
}

const topmost = (paths: ReadonlyArray<string>) => {
  const all = new Set(paths)
  if (all.has("/")) return everything
  return [...all].filter(
    (path) =>
      !pathAndParents(path)
        .slice(0, -1)
        .some((parent) => all.has(parent)),
  )
}

const depthOf = (path: string) => (path === "/" ? 0 : path.split("/").length - 1)

const bytesOf = (paths: ReadonlyArray<string>) => Buffer.byteLength(JSON.stringify(paths))

/** Replaces the deepest paths by their folders until the list is small enough. */
const bounded = (paths: ReadonlyArray<string>) => {
  let kept = topmost(paths)
  while (kept.length > unread_max || bytesOf(kept) > unread_bytes_max) {
    const deepest = Math.max(...kept.map(depthOf))
    kept = topmost(kept.map((path) => (depthOf(path) === deepest ? posix.dirname(path) : path)))
  }
  return kept.toSorted()
}
