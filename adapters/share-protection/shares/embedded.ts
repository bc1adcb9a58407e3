/**
 * The embedded shares: share S of project P is the folder `P/S` below one root, and a new folder is
 * a new share. A restore into a new share uses `P/S.unfinished` until it is complete. Snapshots are
 * copies next to the projects, made file by file, so concurrent writes to the share may be included
 * partially.
 *
 * Source: DECISIONS, shares; document 2, identity, secrets, shares.
 */
import type { Dirent } from "node:fs"
import { lstat, mkdir, readdir, rename } from "node:fs/promises"
import { join } from "node:path"
import { Effect, Layer, Schema, Stream } from "effect"
import { type Share, Shares } from "#actors/share-protection/ports/shares.ts"
import {
  type CopyFailure,
  copyFolder,
  folderBytes,
  removeFolder,
} from "#adapters/share-protection/folder-copy.ts"
import { ProjectId, ShareId, Uuid } from "#schemas/share-protection/id.ts"
import {
  BackendUnavailable,
  NetworkStrategyPrecondition,
  SnapshotStrategyPrecondition,
} from "#schemas/share-protection/rejection.ts"

export interface EmbeddedSharesOptions {
  /** Absolute path. */
  readonly root: string
  /** Whether a share supports snapshots. */
  readonly snapshots: (share_id: ShareId) => boolean
}

/** No project id begins with a dot. */
const snapshots_folder = ".snapshots"
/** Only this service may read tenants' data. */
const folder_mode = 0o700

/** The shares below this root. */
export const sharesEmbedded = (options: EmbeddedSharesOptions) =>
  Layer.succeed(Shares, sharesIn(options))

const unavailable = (detail: string) => new BackendUnavailable({ detail: `Shares: ${detail}.` })

const ofCopy = ({ message }: CopyFailure) => unavailable(message)

const attempt = <A>(what: string, run: () => Promise<A>) =>
  Effect.tryPromise({
    try: run,
    catch: (cause) => {
      const code = cause instanceof Error && "code" in cause ? String(cause.code) : String(cause)
      return unavailable(`cannot ${what}: ${code}`)
    },
  })

/** Whether the path is a folder and not a link to one. */
const isFolder = (path: string) =>
  lstat(path).then(
    (stats) => stats.isDirectory(),
    () => false,
  )

const foldersIn = async (path: string): Promise<ReadonlyArray<string>> => {
  const entries: ReadonlyArray<Dirent> = await readdir(path, { withFileTypes: true }).catch(
    (error: NodeJS.ErrnoException) => {
      if (error.code === "ENOENT") return []
      throw error
    },
  )
  return entries.filter((entry) => entry.isDirectory()).map(({ name }) => name)
}

const no_export = new NetworkStrategyPrecondition({ detail: "The share has no export location." })
const no_snapshot = new SnapshotStrategyPrecondition({ detail: "The share has no snapshots." })

const sharesIn = (options: EmbeddedSharesOptions): Shares["Service"] => ({
  find: Effect.fnUntraced(function* (project_id, id) {
    const is_there = yield* Effect.promise(() => isThere(options, { project_id, id }))
    return is_there ? yield* shareOf(options, { project_id, id }) : undefined
  }),
  list: listOf(options),
  prepare: Effect.fnUntraced(function* (share, { job_id, crash_consistent }) {
    const live = yield* pathOf(options, share)
    const is_possible = share.mount_snapshot_support
    if (crash_consistent === true && !is_possible) return yield* no_snapshot
    const is_live = crash_consistent === false || !is_possible
    const path = is_live ? live : yield* snapshot(options, live, job_id)
    return { path, crash_consistent: !is_live, token: job_id }
  }),
  release: Effect.fnUntraced(function* ({ token }) {
    if (!isUuid(token)) return
    yield* remove(snapshotOf(options, token))
    yield* remove(partOf(options, token))
  }),
  // The job's id is the share's id, so that creating it is idempotent.
  create: Effect.fnUntraced(function* (project_id, { job_id }) {
    const named = { project_id, id: ShareId.make(job_id) }
    const is_finished = yield* Effect.promise(() => isThere(options, named))
    const path = is_finished ? folderOf(options, named) : unfinishedOf(options, named)
    yield* attempt("make a share", () => mkdir(path, { recursive: true, mode: folder_mode }))
    return { share: yield* shareOf(options, named, path), path }
  }),
  finish: Effect.fnUntraced(function* (share) {
    if (yield* Effect.promise(() => isThere(options, share))) return
    yield* attempt("finish a share", () =>
      rename(unfinishedOf(options, share), folderOf(options, share)),
    )
  }),
  pathOf: (share) => pathOf(options, share),
})

type Named = Pick<Share, "project_id" | "id">

const folderOf = ({ root }: EmbeddedSharesOptions, { project_id, id }: Named) =>
  join(root, project_id, id)

/** Next to the shares, with a name that is not a share id. */
const unfinishedOf = (options: EmbeddedSharesOptions, named: Named) =>
  `${folderOf(options, named)}.unfinished`

const isThere = async (options: EmbeddedSharesOptions, named: Named) =>
  (await isFolder(join(options.root, named.project_id))) &&
  (await isFolder(folderOf(options, named)))

const pathOf = Effect.fnUntraced(function* (options: EmbeddedSharesOptions, named: Named) {
  const is_there = yield* Effect.promise(() => isThere(options, named))
  return is_there ? folderOf(options, named) : yield* no_export
})

const shareOf = Effect.fnUntraced(function* (
  options: EmbeddedSharesOptions,
  named: Named,
  path = folderOf(options, named),
) {
  const size_bytes = yield* Effect.mapError(folderBytes(path), ofCopy)
  const has_snapshots = options.snapshots(named.id)
  const share: Share = {
    id: named.id,
    project_id: named.project_id,
    name: named.id,
    size_bytes,
    status: "available",
    snapshot_support: has_snapshots,
    mount_snapshot_support: has_snapshots,
    create_share_from_snapshot_support: has_snapshots,
  }
  return share
})

const isUuid = Schema.is(Uuid)
const isProjectId = Schema.is(ProjectId)
const isShareId = Schema.is(ShareId)

const listOf = (options: EmbeddedSharesOptions) =>
  Stream.fromIterableEffect(attempt("list projects", () => foldersIn(options.root))).pipe(
    Stream.filter(isProjectId),
    Stream.flatMap((project_id) =>
      Stream.fromIterableEffect(
        attempt("list shares", () => foldersIn(join(options.root, project_id))),
      ).pipe(
        Stream.filter(isShareId),
        Stream.mapEffect((id) => shareOf(options, { project_id, id })),
      ),
    ),
  )

const snapshotOf = ({ root }: EmbeddedSharesOptions, token: string) =>
  join(root, snapshots_folder, token)
const partOf = (options: EmbeddedSharesOptions, token: string) =>
  `${snapshotOf(options, token)}.part`

const remove = (path: string) => Effect.mapError(removeFolder(path), ofCopy)

/** The job's copy of a folder. It is renamed to its final name once it is complete. */
const snapshot = Effect.fnUntraced(function* (
  options: EmbeddedSharesOptions,
  from: string,
  token: string,
) {
  const to = snapshotOf(options, token)
  if (yield* Effect.promise(() => isFolder(to))) return to
  const part = partOf(options, token)
  yield* remove(part)
  yield* attempt("make a snapshot", () =>
    mkdir(join(options.root, snapshots_folder), { recursive: true, mode: folder_mode }),
  )
  yield* Effect.mapError(copyFolder(from, part), ofCopy).pipe(
    Effect.onError(() => Effect.ignore(remove(part))),
  )
  yield* attempt("make a snapshot", () => rename(part, to))
  return to
})
