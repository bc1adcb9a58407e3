/** Real folders for a test, deleted with its scope. */
import {
  chmod,
  lstat,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  readlink,
  rm,
  symlink,
  writeFile,
} from "node:fs/promises"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { Effect } from "effect"

/** By path from the folder: a file's text, `null` for an empty folder, `->x` for a link to x. */
export type Tree = Readonly<Record<string, string | null>>

const link = "->"

export const emptyFolder = Effect.acquireRelease(
  Effect.promise(() => mkdtemp(join(tmpdir(), "share-"))),
  (path) => Effect.promise(() => rm(path, { recursive: true, force: true })),
)

export const writeTree = (root: string, tree: Tree) =>
  Effect.promise(async () => {
    for (const [name, content] of Object.entries(tree)) {
      const path = join(root, name)
      await mkdir(content === null ? path : dirname(path), { recursive: true })
      if (content?.startsWith(link)) await symlink(content.slice(link.length), path)
      else if (content !== null) await writeFile(path, content)
    }
  })

export const folderOf = (tree: Tree) => Effect.tap(emptyFolder, (path) => writeTree(path, tree))

/** The contents of a folder; nonempty folders appear only in the paths of their files. */
export const readTree = (root: string) =>
  Effect.promise(async () => {
    const tree: Record<string, string | null> = {}
    for (const entry of await readdir(root, { recursive: true, withFileTypes: true })) {
      const path = join(entry.parentPath, entry.name)
      const name = path.slice(root.length + 1)
      if (entry.isSymbolicLink()) tree[name] = `${link}${await readlink(path)}`
      else if (entry.isFile()) tree[name] = await readFile(path, "utf8")
      else if ((await readdir(path)).length === 0) tree[name] = null
    }
    return tree as Tree
  })

export const setMode = (path: string, mode: number) => Effect.promise(() => chmod(path, mode))
export const modeOf = (path: string) => Effect.promise(async () => (await lstat(path)).mode & 0o777)
