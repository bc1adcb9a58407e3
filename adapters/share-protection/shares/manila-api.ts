/**
 * What of Manila's API shares are backed up and restored by, at one of its microversions.
 *
 * Source: decisions of document 2, identity, secrets, shares.
 */
import { Clock, Effect, Schedule, Schema } from "effect"
import { type Delegation, denials } from "#actors/share-protection/ports/trusts.ts"
import { type Answer, type Call, decoded, unexpected } from "#adapters/keystone/http.ts"
import type { KeystoneSession } from "#adapters/keystone/session.ts"
import { ProjectId, ShareId } from "#schemas/share-protection/id.ts"
import { BackendUnavailable, TrustAccessDenied } from "#schemas/share-protection/rejection.ts"

type Session = KeystoneSession["Service"]
type Token = Delegation["token"]

export const manila = { service: "Manila" } as const

/** OpenStack Wallaby's and later ones': a share's metadata comes with its creation. */
const microversion = "2.65"

/** Manila's own word for GiB. */
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
  /** Below Manila's own address. */
  readonly path: string
  /** A tenant's; without it the service user's. */
  readonly token?: Token | undefined
}

/** Asks Manila; a tenant's token that is not taken any more is the trust's failure. */
export const asked = Effect.fnUntraced(function* (
  session: Session,
  { path, token, ...call }: ManilaCall,
) {
  const endpoint = yield* session.endpoint("shared-file-system", "sharev2", "share")
  // A catalogue may name a project in the address, which would be ours and not the tenant's.
  const url = endpoint.replace(/\/(AUTH_)?[\da-f]{8}-?([\da-f]{4}-?){3}[\da-f]{12}$/, "") + path
  const headers = { "x-openstack-manila-api-version": microversion }
  const request = { ...manila, ...call, url, headers }
  if (token === undefined) return yield* session.askAsService(request)
  const answer = yield* session.ask({ ...request, token })
  if (answer.status === 401) return yield* new TrustAccessDenied({ detail: denials.gone })
  return answer
})

/** Asks as the service user. */
export const askedAsService = (session: Session, call: Omit<ManilaCall, "token">) =>
  Effect.mapError(
    asked(session, call),
    // Of the service user's own token it is never said.
    ({ detail }) => new BackendUnavailable({ detail }),
  )

/** What is at a path, as the service user sees it; undefined where there is nothing. */
export const get = <A>(session: Session, path: string, schema: Schema.Decoder<A>) =>
  Effect.flatMap(askedAsService(session, { method: "GET", path }), (answer) =>
    found(schema, answer),
  )

/** What an answer holds; undefined where there is no such thing. */
export const found = Effect.fnUntraced(function* <A>(schema: Schema.Decoder<A>, answer: Answer) {
  if (answer.status === 404) return undefined
  if (answer.status !== 200 && answer.status !== 202) return yield* refusal(answer)
  return yield* decoded(schema, manila, answer)
})

/** 413 is what Manila says of a quota. */
export const refusal = (answer: Answer) =>
  answer.status === 413
    ? new BackendUnavailable({ detail: "Manila refuses it: a quota is used up." })
    : unexpected(manila, answer)

/** From one look at a status to the next: a share takes from some 0.2 s to minutes. */
const looks = Schedule.min([Schedule.exponential(100, 1.5), Schedule.spaced(5000)])

/** Looks until `is_done`, no longer than the deadline; what it saw last, at once where it is so. */
export const watched = Effect.fnUntraced(function* <A, E>(
  look: Effect.Effect<A, E>,
  is_done: (seen: A) => boolean,
  deadline_s: number,
) {
  const ends_ms = (yield* Clock.currentTimeMillis) + deadline_s * 1000
  const timed = Effect.zip(look, Clock.currentTimeMillis)
  const [seen] = yield* Effect.repeat(timed, {
    schedule: looks,
    until: ([seen, now]) => is_done(seen) || now >= ends_ms,
  })
  if (is_done(seen)) return seen
  return yield* new BackendUnavailable({
    detail: `Manila took longer than ${deadline_s} s to make or remove what a job needs.`,
  })
})
