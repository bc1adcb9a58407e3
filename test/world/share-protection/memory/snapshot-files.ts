/** The contents of an in-memory snapshot: files read from a folder, and written to one. */
import {
  chmod,
  lstat,
  mkdir,
  readdir,
  readFile,
  readlink,
  rm,
  symlink,
  writeFile,
} from "node:fs/promises"
import { dirname, join } from "node:path"

export interface Entry {
  /** Relative to the root: `/a/b`. */
  readonly path: string
  readonly kind: "file" | "folder" | "link"
  readonly mode: number
  /** The target of a link. */
  readonly target?: string
}

/** Whether an engine pattern matches the path or one of its parent folders. */
const matcher = (pattern: string) => {
  const parts = pattern.replaceAll(/^\/+|\/+$/g, "").split("/")
  const source = parts
    .map((part) =>
      part === "**"
        ? ".*"
        : part
            .replaceAll(/[.+^${}()|\\]/g, String.raw`\$&`)
            .replaceAll("*", "[^/]*")
            .replaceAll("?", "[^/]"),
    )
    .join("/")
  const pattern_of = new RegExp(`${pattern.startsWith("/") ? "^/" : "(^|/)"}${source}(/|$)`)
  return (path: string) => pattern_of.test(path)
}

/** Whether the patterns include a path in a snapshot. */
export const scopeOf = (
  include_patterns: ReadonlyArray<string>,
  exclude_patterns: ReadonlyArray<string>,
) => {
  const includes = include_patterns.map(matcher)
  const excludes = exclude_patterns.map(matcher)
  return (path: string) =>
    (includes.length === 0 || includes.some((is) => is(path))) && !excludes.some((is) => is(path))
}

/** The entries of a folder that belong in a snapshot: in order, folders before their contents. */
export const entriesOf = async (
  root: string,
  include_patterns: ReadonlyArray<string>,
  exclude_patterns: ReadonlyArray<string>,
): Promise<ReadonlyArray<Entry>> => {
  const includes = include_patterns.map(matcher)
  const excludes = exclude_patterns.map(matcher)
  const entries: Array<Entry> = []
  for (const found of await readdir(root, { recursive: true, withFileTypes: true })) {
    const absolute = join(found.parentPath, found.name)
    const path = absolute.slice(root.length)
    if (excludes.some((matches) => matches(path))) continue
    const mode = (await lstat(absolute)).mode & 0o777
    if (found.isSymbolicLink()) {
      entries.push({ path, kind: "link", mode, target: await readlink(absolute) })
    } else if (found.isFile() || found.isDirectory()) {
      entries.push({ path, kind: found.isFile() ? "file" : "folder", mode })
    }
  }
  const included = (path: string) => includes.length === 0 || includes.some((is) => is(path))
  const wanted = entries.filter(
    ({ path, kind }) =>
      included(path) ||
      (kind === "folder" &&
        entries.some((other) => other.path.startsWith(`${path}/`) && included(other.path))),
  )
  return wanted.toSorted((one, other) => (one.path < other.path ? -1 : 1))
}

export const readEntry = (root: string, { path }: Entry) => readFile(join(root, path))

/** Writes an entry, replacing any existing one. */
export const writeEntry = async (root: string, entry: Entry, bytes: Uint8Array) => {
  const path = join(root, entry.path)
  if (entry.kind === "folder") {
    await mkdir(path, { recursive: true })
    return
  }
  await mkdir(dirname(path), { recursive: true })
  await rm(path, { force: true })
  if (entry.kind === "link") await symlink(entry.target ?? "", path)
  else await writeFile(path, bytes, { mode: entry.mode })
  if (entry.kind === "file") await chmod(path, entry.mode)
}

/** Removes an entry and everything below it. */
export const removeEntry = (root: string, { path }: Entry) =>
  rm(join(root, path), { recursive: true, force: true })

/** Compares the entry on disk with this one; `bytes` is a file's content. */
export const isSame = async (root: string, entry: Entry, bytes: Uint8Array | undefined) => {
  const [found] = await lstat(join(root, entry.path)).then(
    (stat) => [stat],
    () => [],
  )
  if (found === undefined) return "absent"
  if (entry.kind === "folder") return found.isDirectory() ? "same" : "absent"
  if (entry.kind === "link") {
    if (!found.isSymbolicLink()) return "absent"
    return (await readlink(join(root, entry.path))) === entry.target ? "same" : "different"
  }
  if (!found.isFile()) return "absent"
  const is_same = bytes !== undefined && (await readEntry(root, entry)).equals(bytes)
  return is_same ? "same" : "different"
}

/** The entries at and below a sub path; null if there are none. */
export const below = <One extends Entry>(
  entries: ReadonlyArray<One>,
  sub_path: string | null,
): ReadonlyArray<One> | null => {
  const path = (sub_path ?? "/").replaceAll(/\/+/g, "/").replace(/\/$/, "")
  if (path === "") return entries
  const found = entries.filter((entry) => entry.path === path || entry.path.startsWith(`${path}/`))
  return found.length === 0 ? null : found
}
