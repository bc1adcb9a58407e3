import { Effect, type Scope } from "effect"
import {
  Engine,
  EngineFailed,
  type FolderBackup,
  type Repository,
} from "#actors/share-protection/ports/engine.ts"
import { NotFound } from "#schemas/share-protection/rejection.ts"
import { emptyFolder, folderOf, readTree, type Tree } from "../../world/folder.ts"

export type Made<A> = Effect.Effect<A, unknown, Engine | Scope.Scope>

/** The parts that an adapter provides for the engine's tests. */
export interface EnginePlace {
  /** An unused bucket and a password. */
  readonly bucket: Made<Repository>
  /** The same, with a repository of format 1 in it. */
  readonly old: Made<Repository>
  /** The same as `bucket`, but each write is slow. */
  readonly slow: Made<Repository>
  /** Starts a backup, and kills the engine in the middle of it. */
  readonly kill: (repository: Repository, folder: FolderBackup) => Made<unknown>
  /** Makes a file unreadable. */
  readonly hide: (path: string) => Made<unknown>
}

/** Features that an adapter may lack; tests that need them are skipped. */
export type Lack = "old" | "slow" | "kill" | "hide"

export type Test = (
  name: string,
  body: (place: EnginePlace) => Made<void>,
  ...needs: ReadonlyArray<Lack>
) => void

export const files: Tree = {
  "a.txt": "first",
  "empty.txt": "",
  "home/u1/notes.txt": "of the first",
  "home/u1/cache/one.tmp": "not wanted",
  "home/u2/notes.txt": "of the second",
  "home/u2/[odd] *name?.txt": "odd",
  "home/u3": null,
  "ünï/ö.bin": "\u0000\u0001ü",
  link: "->home/u1/notes.txt",
}

export const quiet = () => Effect.void
export const share = "5b0d0e0e-0000-4000-8000-000000000001"
export const whole = { host: share, include_patterns: [], exclude_patterns: [] }
export const tags = ["backup=one", "share=s"]

export const isFailed = (failure: unknown) => failure instanceof EngineFailed
export const isNotFound = (failure: unknown) => failure instanceof NotFound

/** A repository with one snapshot of these files. */
export const backedUp = Effect.fnUntraced(function* (place: EnginePlace, tree: Tree = files) {
  const engine = yield* Engine
  const repository = yield* place.bucket
  yield* engine.init(repository)
  const path = yield* folderOf(tree)
  const made = yield* engine.backup(repository, { path, ...whole, tags }, quiet)
  return { engine, repository, path, made }
})

export const restored = Effect.fnUntraced(function* (
  repository: Repository,
  engine_snapshot_id: string,
  sub_path: string | null = null,
) {
  const path = yield* emptyFolder
  const folder = { engine_snapshot_id, path, sub_path, is_exact: false }
  const result = yield* (yield* Engine).restore(repository, folder, quiet)
  return { ...result, path, tree: yield* readTree(path) }
})

export const bytesOf = (tree: Tree) =>
  Object.values(tree).reduce(
    (sum, text) => sum + (text?.startsWith("->") ? 0 : Buffer.byteLength(text ?? "")),
    0,
  )
export const countOf = (tree: Tree) =>
  Object.values(tree).filter((text) => text !== null && !text.startsWith("->")).length
