/**
 * What a backup could not read, by the errors that restic met: it is not in the snapshot, and yet
 * is nothing that an exact restore may delete.
 */
import { posix } from "node:path"
import { unread_bytes_max, unread_max } from "#schemas/share-protection/backup.ts"
import type { Ended } from "./process.ts"
import { aboves } from "./scope.ts"

const everything = ["/"]

/**
 * Paths below the folder, or folders that hold such where they are too many. Where restic met more
 * than is kept, or does not say what it was about, that is the folder itself.
 */
export const unreadIn = (folder: string, { items, errors_count }: Ended): ReadonlyArray<string> => {
  if (items.length === 0 || items.length < errors_count) return everything
  const paths = items.map((item) => below(folder, item))
  return paths.includes(undefined) ? everything : bounded(paths.flatMap((path) => path ?? []))
}

/** restic names what it met from where it works, or from the machine's root. */
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
      !aboves(path)
        .slice(0, -1)
        .some((above) => all.has(above)),
  )
}

const depthOf = (path: string) => (path === "/" ? 0 : path.split("/").length - 1)

const bytesOf = (paths: ReadonlyArray<string>) => Buffer.byteLength(JSON.stringify(paths))

/** As few as are kept: of the deepest the folders, until it is so. */
const bounded = (paths: ReadonlyArray<string>) => {
  let kept = topmost(paths)
  while (kept.length > unread_max || bytesOf(kept) > unread_bytes_max) {
    const deepest = Math.max(...kept.map(depthOf))
    kept = topmost(kept.map((path) => (depthOf(path) === deepest ? posix.dirname(path) : path)))
  }
  return kept.toSorted()
}
