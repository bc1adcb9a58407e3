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

const copyFailure = ({ message }: CopyFailure) => unavailable(message)

const attempt = <A>(action: string, run: () => Promise<A>) =>
  Effect.tryPromise({
    try: run,
    catch: (cause) => {
      const code = cause instanceof Error && "code" in cause ? String(cause.code) : String(cause)
      return unavailable(`cannot ${action}: ${code}`)
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
    const exists = yield* Effect.promise(() => shareExists(options, { project_id, id }))
    return exists ? yield* shareOf(options, { project_id, id }) : undefined
  }),
  list: listOf(options),
  prepare: Effect.fnUntraced(function* (share, { job_id, crash_consistent }) {
    const live = yield* pathOf(options, share)
    const supports_snapshots = share.mount_snapshot_support
    if (crash_consistent === true && !supports_snapshots) return yield* no_snapshot
    const is_live = crash_consistent === false || !supports_snapshots
    const path = is_live ? live : yield* snapshot(options, live, job_id)
    return { path, crash_consistent: !is_live, token: job_id }
  }),
  release: Effect.fnUntraced(function* ({ token }) {
    if (!isUuid(token)) return
    yield* remove(snapshotOf(options, token))
    yield* remove(partialOf(options, token))
  }),
  // The job's id is the share's id, so that creating it is idempotent.
  create: Effect.fnUntraced(function* (project_id, { job_id }) {
    const key = { project_id, id: ShareId.make(job_id) }
    const is_finished = yield* Effect.promise(() => shareExists(options, key))
    const path = is_finished ? folderOf(options, key) : unfinishedOf(options, key)
    yield* attempt("create a share", () => mkdir(path, { recursive: true, mode: folder_mode }))
    return { share: yield* shareOf(options, key, path), path }
  }),
  finish: Effect.fnUntraced(function* (share) {
    if (yield* Effect.promise(() => shareExists(options, share))) return
    yield* attempt("finish a share", () =>
      rename(unfinishedOf(options, share), folderOf(options, share)),
    )
  }),
  pathOf: (share) => pathOf(options, share),
})

type ShareKey = Pick<Share, "project_id" | "id">

const folderOf = ({ root }: EmbeddedSharesOptions, { project_id, id }: ShareKey) =>
  join(root, project_id, id)

/** Next to the shares, with a name that is not a share id. */
const unfinishedOf = (options: EmbeddedSharesOptions, key: ShareKey) =>
  `${folderOf(options, key)}.unfinished`

const shareExists = async (options: EmbeddedSharesOptions, key: ShareKey) =>
  (await isFolder(join(options.root, key.project_id))) && (await isFolder(folderOf(options, key)))

const pathOf = Effect.fnUntraced(function* (options: EmbeddedSharesOptions, key: ShareKey) {
  const exists = yield* Effect.promise(() => shareExists(options, key))
  return exists ? folderOf(options, key) : yield* no_export
})

const shareOf = Effect.fnUntraced(function* (
  options: EmbeddedSharesOptions,
  key: ShareKey,
  path = folderOf(options, key),
) {
  const size_bytes = yield* Effect.mapError(folderBytes(path), copyFailure)
  const has_snapshots = options.snapshots(key.id)
  const share: Share = {
    id: key.id,
    project_id: key.project_id,
    name: key.id,
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
const partialOf = (options: EmbeddedSharesOptions, token: string) =>
  `${snapshotOf(options, token)}.part`

const remove = (path: string) => Effect.mapError(removeFolder(path), copyFailure)

/** The job's copy of a folder. It is renamed to its final name once it is complete. */
const snapshot = Effect.fnUntraced(function* (
  options: EmbeddedSharesOptions,
  from: string,
  token: string,
) {
  const to = snapshotOf(options, token)
  if (yield* Effect.promise(() => isFolder(to))) return to
  const partial = partialOf(options, token)
  yield* remove(partial)
  yield* attempt("create a snapshot", () =>
    mkdir(join(options.root, snapshots_folder), { recursive: true, mode: folder_mode }),
  )
  yield* Effect.mapError(copyFolder(from, partial), copyFailure).pipe(
    Effect.onError(() => Effect.ignore(remove(partial))),
  )
  yield* attempt("create a snapshot", () => rename(partial, to))
  return to
})
