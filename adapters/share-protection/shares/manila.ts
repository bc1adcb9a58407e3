/**
 * Manila's shares. The service user can see the shares of all projects. Snapshots and copies made
 * for reading a share are in its own project and named after the job. A new share is created in the
 * tenant's project, with the tenant's trust.
 *
 * Source: document 2 §1, §7; decisions of document 2, backup create, identity, secrets, shares.
 */
import { Effect, Layer, Option, Schema, Stream } from "effect"
import { type NewShare, type Share, Shares } from "#actors/share-protection/ports/shares.ts"
import { KeystoneSession } from "#adapters/keystone/session.ts"
import {
  localMounts,
  type Mounts,
  nfsMounts,
  nfsOf,
  no_export,
} from "#adapters/share-protection/share-mount.ts"
import {
  allowAccess,
  allowSnapshotAccess,
} from "#adapters/share-protection/shares/manila-access.ts"
import {
  decodeIfFound,
  get,
  gib,
  Location,
  ManilaShare,
  ManilaSnapshot,
  poll,
  refusal,
  sendAsService,
  sendToManila,
} from "#adapters/share-protection/shares/manila-api.ts"
import type { Settings } from "#schemas/settings.ts"
import { JobId, type ProjectId, type ShareId } from "#schemas/share-protection/id.ts"
import {
  BackendUnavailable,
  NetworkStrategyPrecondition,
  SnapshotStrategyPrecondition,
} from "#schemas/share-protection/rejection.ts"

type Session = KeystoneSession["Service"]

/** Dependencies of the functions below. */
interface Manila {
  readonly session: Session
  readonly mounts: Mounts
  readonly settings: Settings["manila"]
}

/** Shares in the Manila of Keystone's catalogue; mounts last as long as the layer. */
export const sharesManila = (settings: Settings["manila"]) =>
  Layer.effect(
    Shares,
    Effect.gen(function* () {
      const session = yield* KeystoneSession
      const is_local = settings.mount === "local"
      const mounts = is_local ? localMounts : yield* nfsMounts(nfsOf(settings.mounts_dir))
      return sharesOf({ session, mounts, settings })
    }),
  )

/** Name of the snapshot and the copy that a job makes to read a share. */
const nameOf = (job_id: string) => `almanac-${job_id}`
/** Metadata key of shares that a job created for a restore. */
const job_key = "almanac_job"

const page_max = 1000

const One = Schema.Struct({ share: ManilaShare })
const Page = Schema.Struct({ shares: Schema.Array(ManilaShare) })
const Snapshot = Schema.Struct({ snapshot: ManilaSnapshot })
const Snapshots = Schema.Struct({ snapshots: Schema.Array(ManilaSnapshot) })

export const sharesOf = (manila: Manila): Shares["Service"] => ({
  find: Effect.fnUntraced(function* (project_id, share_id) {
    const share = yield* shareById(manila, share_id)
    return share?.project_id === project_id ? portShare(share) : undefined
  }),
  list: listOf(manila),
  prepare: Effect.fnUntraced(function* (share, { job_id, crash_consistent }) {
    // A share without an export cannot be read through a snapshot either.
    const live = yield* exportOf(manila, share.id)
    const strategy = strategyOf(share, crash_consistent)
    if (strategy === undefined) return yield* no_snapshot
    const source = { crash_consistent: strategy !== "live", token: job_id }
    if (strategy === "live") {
      yield* allowAccess(manila, share.id, "ro")
      return { ...source, path: yield* manila.mounts.attach(live, job_id, "ro") }
    }
    const snapshot = yield* snapshotFor(manila, share.id, job_id)
    const path = yield* strategy === "mount"
      ? snapshotExport(manila, snapshot)
      : copyExport(manila, snapshot, share.id, job_id)
    return { ...source, path: yield* manila.mounts.attach(path, job_id, "ro") }
  }),
  release: Effect.fnUntraced(function* ({ token }) {
    if (!isJobId(token)) return
    yield* manila.mounts.detach(token)
    // Remove copies first: Manila keeps a snapshot as long as a share made from it exists.
    for (const { id } of yield* copiesOf(manila, token))
      yield* removeAndWait(manila, `/shares/${id}`)
    for (const { id } of yield* snapshotsOf(manila, token)) {
      yield* removeAndWait(manila, `/snapshots/${id}`)
    }
  }),
  create: Effect.fnUntraced(function* (project_id, options) {
    const share = yield* newShare(manila, project_id, options)
    return { share: portShare(share), path: yield* livePath(manila, share.id) }
  }),
  finish: Effect.fnUntraced(function* ({ id }, { name, by }) {
    const { token } = yield* by
    const path = `/shares/${id}`
    const share = { display_name: name }
    const response = yield* sendToManila(manila.session, {
      method: "PUT",
      path,
      body: { share },
      token,
    })
    if (response.status !== 200) return yield* refusal(response)
  }),
  pathOf: ({ id }) => livePath(manila, id),
})

const isJobId = Schema.is(JobId)

const no_snapshot = Effect.fail(
  new SnapshotStrategyPrecondition({
    detail: "The share has no readable snapshots, but a snapshot was requested.",
  }),
)

/** How to read a share; undefined if the requested consistency is not supported. */
const strategyOf = (share: Share, crash_consistent: boolean | null) => {
  if (crash_consistent === false) return "live"
  if (share.snapshot_support && share.mount_snapshot_support) return "mount"
  if (share.snapshot_support && share.create_share_from_snapshot_support) return "copy"
  return crash_consistent === true ? undefined : "live"
}

const portShare = ({
  size,
  name,
  share_proto: _,
  share_type: __,
  ...share
}: ManilaShare): Share => ({
  ...share,
  name: name ?? share.id,
  size_bytes: size * gib,
})

const shareById = (manila: Manila, id: string) =>
  Effect.map(get(manila.session, `/shares/${id}`, One), (response) => response?.share)

/** Without the role Manila would silently list only our own project's shares. */
const seesAll = Effect.fnUntraced(function* ({ session, settings }: Manila) {
  if ((yield* session.roles).has(settings.admin_role)) return
  const detail = `The service user lacks the role ${settings.admin_role} (manila.admin_role).`
  return yield* new BackendUnavailable({ detail })
})

/** Uses limit and offset, because Manila's links to the next page lead to the first one. */
const listOf = (manila: Manila) =>
  Stream.paginate(0, (offset: number) =>
    Effect.gen(function* () {
      if (offset === 0) yield* seesAll(manila)
      const query = `all_tenants=1&limit=${page_max}&offset=${offset}`
      const { shares = [] } = (yield* get(manila.session, `/shares/detail?${query}`, Page)) ?? {}
      const next = shares.length < page_max ? Option.none() : Option.some(offset + page_max)
      return [shares.map(portShare), next] as const
    }),
  )

const locations = (manila: Manila, path: string, key: string) =>
  Effect.map(
    get(manila.session, path, Schema.Record(Schema.String, Schema.Array(Location))),
    (response) => {
      const usable = (response?.[key] ?? []).filter(({ is_admin_only }) => is_admin_only !== true)
      return (usable.find(({ preferred }) => preferred) ?? usable[0])?.path
    },
  )

/** A share's export location that workers can use. */
const exportOf = Effect.fnUntraced(function* (manila: Manila, id: string) {
  const path = yield* locations(manila, `/shares/${id}/export_locations`, "export_locations")
  if (path === undefined) return yield* no_export
  if (manila.settings.mount === "local") yield* manila.mounts.attach(path, id, "ro")
  return path
})

const livePath = Effect.fnUntraced(function* (manila: Manila, id: ShareId) {
  const path = yield* exportOf(manila, id)
  yield* allowAccess(manila, id, "rw")
  return yield* manila.mounts.attach(path, id, "rw")
})

const withName = <A extends { readonly name: string | null }>(
  all: ReadonlyArray<A>,
  name: string,
) => all.filter((one) => one.name === name)

const snapshotsOf = Effect.fnUntraced(function* (manila: Manila, job_id: string) {
  const name = nameOf(job_id)
  const response = yield* get(
    manila.session,
    `/snapshots/detail?name=${name}&limit=${page_max}`,
    Snapshots,
  )
  return withName(response?.snapshots ?? [], name)
})

const copiesOf = Effect.fnUntraced(function* (manila: Manila, job_id: string) {
  const name = nameOf(job_id)
  const response = yield* get(manila.session, `/shares/detail?name=${name}&limit=${page_max}`, Page)
  return withName(response?.shares ?? [], name)
})

const pending_statuses = /^(creating|creating_from_snapshot|.*_to_apply|applying|migrating.*)$/

/** Waits until a resource has been created; its status must then be `available`. */
const waitUntilAvailable = Effect.fnUntraced(function* <A extends { readonly status: string }>(
  { settings }: Manila,
  read: Effect.Effect<A | undefined, BackendUnavailable>,
) {
  const isDone = (seen: A | undefined) => seen === undefined || !pending_statuses.test(seen.status)
  const settled = yield* poll(read, isDone, settings.deadline_seconds)
  if (settled?.status === "available") return settled
  const detail =
    `Manila could not create a share or snapshot for a job: its status is ` +
    `${settled?.status ?? "deleted"}.`
  return yield* new BackendUnavailable({ detail })
})

/** The job's snapshot; replaces one that failed. */
const snapshotFor = Effect.fnUntraced(function* (manila: Manila, share_id: ShareId, job_id: JobId) {
  const read = (id: string) =>
    Effect.map(get(manila.session, `/snapshots/${id}`, Snapshot), (response) => response?.snapshot)
  for (const existing of yield* snapshotsOf(manila, job_id)) {
    const is_usable = existing.share_id === share_id && !/error|deleting/.test(existing.status)
    if (is_usable) return (yield* waitUntilAvailable(manila, read(existing.id))).id
    yield* removeAndWait(manila, `/snapshots/${existing.id}`)
  }
  const snapshot = { share_id, name: nameOf(job_id), force: false }
  const response = yield* sendAsService(manila.session, {
    method: "POST",
    path: "/snapshots",
    body: { snapshot },
  })
  if (response.status === 422) return yield* no_snapshot
  const created = yield* decodeIfFound(Snapshot, response)
  if (created === undefined) return yield* no_export
  return (yield* waitUntilAvailable(manila, read(created.snapshot.id))).id
})

const snapshotExport = Effect.fnUntraced(function* (manila: Manila, id: string) {
  yield* allowSnapshotAccess(manila, id)
  const key = "share_snapshot_export_locations"
  const path = yield* locations(manila, `/snapshots/${id}/export-locations`, key)
  return path ?? (yield* no_export)
})

/** A share in our project, made from the snapshot, for as long as the job reads it. */
const copyExport = Effect.fnUntraced(function* (
  manila: Manila,
  snapshot_id: string,
  share_id: ShareId,
  job_id: JobId,
) {
  const like = yield* shareById(manila, share_id)
  if (like === undefined) return yield* no_export
  const [existing] = yield* copiesOf(manila, job_id)
  const created = existing ?? (yield* createCopy(manila, like, snapshot_id, job_id))
  const { id } = yield* waitUntilAvailable(manila, shareById(manila, created.id))
  yield* allowAccess(manila, id, "ro")
  return yield* exportOf(manila, id)
})

const createCopy = Effect.fnUntraced(function* (
  manila: Manila,
  { share_proto, size, share_type }: ManilaShare,
  snapshot_id: string,
  job_id: JobId,
) {
  const share = {
    share_proto,
    size,
    share_type,
    snapshot_id,
    name: nameOf(job_id),
    is_public: false,
  }
  const response = yield* sendAsService(manila.session, {
    method: "POST",
    path: "/shares",
    body: { share },
  })
  const created = yield* decodeIfFound(One, response)
  return created?.share ?? (yield* no_export)
})

/** Removes a share or snapshot, and waits until it is gone. */
const removeAndWait = Effect.fnUntraced(function* (manila: Manila, path: string) {
  const response = yield* sendAsService(manila.session, { method: "DELETE", path })
  if (response.status === 404) return
  if (response.status !== 202) return yield* refusal(response)
  const read = Effect.map(
    sendAsService(manila.session, { method: "GET", path }),
    ({ status }) => status,
  )
  yield* poll(read, (status) => status === 404, manila.settings.deadline_seconds)
})

/** The job's new share in the tenant's project: an existing one with its metadata, or a new one. */
const newShare = Effect.fnUntraced(function* (
  manila: Manila,
  project_id: ProjectId,
  { job_id, like, name, by }: NewShare,
) {
  const { token, project_id: token_project } = yield* by
  if (token_project !== project_id) return yield* foreign_trust
  const metadata = { [job_key]: job_id }
  const query = new URLSearchParams({ metadata: JSON.stringify(metadata).replaceAll('"', "'") })
  const path = `/shares/detail?${query}`
  const listed = yield* sendToManila(manila.session, { method: "GET", path, token })
  const [existing] = (yield* decodeIfFound(Page, listed))?.shares ?? []
  if (existing !== undefined)
    return yield* waitUntilAvailable(manila, shareById(manila, existing.id))
  const unfinished = { name: `${name} (unfinished)`, metadata, is_public: false }
  const share = { ...(yield* kindOf(manila, like)), ...unfinished }
  const response = yield* sendToManila(manila.session, {
    method: "POST",
    path: "/shares",
    body: { share },
    token,
  })
  const created = yield* decodeIfFound(One, response)
  if (created === undefined) return yield* no_export
  return yield* waitUntilAvailable(manila, shareById(manila, created.share.id))
})

const foreign_trust = Effect.fail(
  new NetworkStrategyPrecondition({
    detail: "A new share needs a trust of its own project, but the target's trust is from another.",
  }),
)

/** Like the share that was backed up, or of the default type if that no longer exists. */
const kindOf = Effect.fnUntraced(function* (manila: Manila, { id }: Share) {
  const like = yield* shareById(manila, id)
  if (like === undefined) return { share_proto: "NFS", size: manila.settings.lost_share_gib }
  const { share_proto, size, share_type } = like
  return { share_proto, size, ...(share_type !== null && { share_type }) }
})
