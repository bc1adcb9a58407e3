/**
 * The part of Manila's API that backups and restores use, at a fixed microversion.
 *
 * Source: decisions of document 2, identity, secrets, shares.
 */
import { Clock, Effect, Schedule, Schema } from "effect"
import { type Delegation, denials } from "#actors/share-protection/ports/trusts.ts"
import {
  type Call,
  type CloudResponse,
  decodeResponse,
  unexpected,
} from "#adapters/keystone/http.ts"
import type { KeystoneSession } from "#adapters/keystone/session.ts"
import { ProjectId, ShareId } from "#schemas/share-protection/id.ts"
import { BackendUnavailable, TrustAccessDenied } from "#schemas/share-protection/rejection.ts"

type Session = KeystoneSession["Service"]
type Token = Delegation["token"]

export const manila = { service: "Manila" } as const

/** Supported since OpenStack Wallaby; shares can be created with metadata. */
const microversion = "2.65"

/** A GiB, Manila's unit of sizes. */
export const gib = 2 ** 30

export const ManilaShare = Schema.Struct({
  id: ShareId,
  project_id: ProjectId,
  name: Schema.NullOr(Schema.String),
  size: Schema.Int,
  status: Schema.String,
  share_proto: Schema.String,
  share_type: Schema.NullOr(Schema.String),
  snapshot_support: Schema.Boolean,
  mount_snapshot_support: Schema.Boolean,
  create_share_from_snapshot_support: Schema.Boolean,
})
export type ManilaShare = typeof ManilaShare.Type

export const ManilaSnapshot = Schema.Struct({
  id: Schema.String,
  name: Schema.NullOr(Schema.String),
  share_id: Schema.String,
  status: Schema.String,
})
export type ManilaSnapshot = typeof ManilaSnapshot.Type

export const Location = Schema.Struct({
  path: Schema.String,
  preferred: Schema.optionalKey(Schema.Boolean),
  is_admin_only: Schema.optionalKey(Schema.Boolean),
})
export type Location = typeof Location.Type

export interface ManilaCall extends Pick<Call, "method" | "body"> {
  /** Relative to Manila's endpoint. */
  readonly path: string
  /** A tenant's token; the service user's if absent. */
  readonly token?: Token | undefined
}

/**
 * Sends a request to Manila. A rejected token of a tenant is reported as a failure of the trust.
 */
export const sendToManila = Effect.fnUntraced(function* (
  session: Session,
  { path, token, ...call }: ManilaCall,
) {
  const endpoint = yield* session.endpoint("shared-file-system", "sharev2", "share")
  // The catalogue's endpoint may contain a project id, which would be ours instead of the tenant's.
  const url = endpoint.replace(/\/(AUTH_)?[\da-f]{8}-?([\da-f]{4}-?){3}[\da-f]{12}$/, "") + path
  const headers = { "x-openstack-manila-api-version": microversion }
  const request = { ...manila, ...call, url, headers }
  if (token === undefined) return yield* session.sendAsService(request)
  const response = yield* session.send({ ...request, token })
  if (response.status === 401) return yield* new TrustAccessDenied({ detail: denials.gone })
  return response
})

/** Sends a request as the service user. */
export const sendAsService = (session: Session, call: Omit<ManilaCall, "token">) =>
  Effect.mapError(
    sendToManila(session, call),
    // Cannot occur with the service user's own token.
    ({ detail }) => new BackendUnavailable({ detail }),
  )

/** The resource at a path, as the service user sees it; undefined if it does not exist. */
export const get = <A>(session: Session, path: string, schema: Schema.Decoder<A>) =>
  Effect.flatMap(sendAsService(session, { method: "GET", path }), (response) =>
    decodeIfFound(schema, response),
  )

/** Decodes a response; undefined if the resource does not exist. */
export const decodeIfFound = Effect.fnUntraced(function* <A>(
  schema: Schema.Decoder<A>,
  response: CloudResponse,
) {
  if (response.status === 404) return undefined
  if (response.status !== 200 && response.status !== 202) return yield* refusal(response)
  return yield* decodeResponse(schema, manila, response)
})

/** Manila uses 413 for an exceeded quota. */
export const refusal = (response: CloudResponse) =>
  response.status === 413
    ? new BackendUnavailable({ detail: "Manila rejects the request: a quota is exceeded." })
    : unexpected(manila, response)

/** Pauses between two polls of a status: creating a share takes from 0.2 s to minutes. */
const poll_schedule = Schedule.min([Schedule.exponential(100, 1.5), Schedule.spaced(5000)])

/** Polls until `is_done` and returns the last value; fails after the deadline. */
export const poll = Effect.fnUntraced(function* <A, E>(
  read: Effect.Effect<A, E>,
  is_done: (seen: A) => boolean,
  deadline_s: number,
) {
  const ends_ms = (yield* Clock.currentTimeMillis) + deadline_s * 1000
  const timed = Effect.zip(read, Clock.currentTimeMillis)
  const [seen] = yield* Effect.repeat(timed, {
    schedule: poll_schedule,
    until: ([seen, now]) => is_done(seen) || now >= ends_ms,
  })
  if (is_done(seen)) return seen
  return yield* new BackendUnavailable({
    detail:
      `Manila took longer than ${deadline_s} s to create or delete a share or snapshot for a ` +
      `job.`,
  })
})
