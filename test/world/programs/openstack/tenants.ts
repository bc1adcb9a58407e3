/** Actions of the seeded cloud's tenants: creating trusts, secrets and shares. */
import { mkdirSync, rmSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { Effect, Schedule } from "effect"
import { v7 } from "uuid"
import type { Openstack } from "../openstack.ts"
import { baseOf } from "./configuration.ts"
import { type Answer, ask, type Json, type ShareType } from "./seed.ts"

type Cloud = Openstack["Service"]
type User = "alice" | "bob"
type Project = "tenant-a" | "tenant-b"

export interface TrustWish {
  readonly trustor?: User
  readonly project?: Project
  readonly trustee?: string
  readonly impersonation?: boolean
  readonly remaining_uses?: number
  readonly expires_in_s?: number
  readonly roles?: ReadonlyArray<string>
}

const asking = (...args: Parameters<typeof ask>) => Effect.promise(() => ask(...args))

/** The response, which must not be an error: otherwise the test would prove nothing. */
const expected = (answer: Effect.Effect<Answer>) =>
  Effect.map(answer, ({ status, body }): Json => {
    if (status >= 400) throw new Error(`${status} ${JSON.stringify(body)}`)
    return body
  })

/** Polls every 50 ms for up to two minutes until the condition holds. */
export const until = <A>(look: Effect.Effect<A>, is_so: (seen: A) => boolean) =>
  Effect.repeat(look, { until: is_so, schedule: Schedule.spaced(50), times: 2400 })

/** Creates a trust for the service user, or for another trustee if given. Returns its id. */
export const makeTrust = Effect.fnUntraced(function* (cloud: Cloud, wish: TrustWish = {}) {
  const { trustor = "alice", project = "tenant-a", trustee = "svcprotect", ...more } = wish
  const { seed, auth_url, tokenOf } = cloud
  const { expires_in_s, roles = ["member", "creator"] } = more
  const expires_at =
    expires_in_s === undefined
      ? null
      : new Date(Date.now() + expires_in_s * 1000).toISOString().replace("Z", "000Z")
  const trust = {
    trustor_user_id: seed.users[trustor],
    trustee_user_id: seed.users[trustee],
    project_id: seed.projects[project],
    impersonation: more.impersonation ?? true,
    expires_at,
    remaining_uses: more.remaining_uses ?? null,
    roles: roles.map((name) => ({ name })),
  }
  const token = yield* tokenOf(trustor, project)
  const body = yield* expected(
    asking("POST", `${auth_url}/OS-TRUST/trusts`, { token, body: { trust } }),
  )
  return body.trust.id as string
})

/** An expired trust. */
export const makeExpiredTrust = Effect.fnUntraced(function* (cloud: Cloud) {
  const id = yield* makeTrust(cloud, { expires_in_s: 1 })
  const token = yield* cloud.adminToken
  const url = `${cloud.auth_url}/OS-TRUST/trusts/${id}`
  yield* until(asking("GET", url, { token }), ({ status }) => status === 404)
  return id
})

export const deleteTrust = Effect.fnUntraced(function* (cloud: Cloud, id: string) {
  const token = yield* cloud.tokenOf("svcprotect", "service")
  yield* expected(asking("DELETE", `${cloud.auth_url}/OS-TRUST/trusts/${id}`, { token }))
})

/** Grants a role in a project to a user, or revokes it. */
export const assign = Effect.fnUntraced(function* (
  cloud: Cloud,
  method: "PUT" | "DELETE",
  { user, project, role }: { user: string; project: string; role: string },
) {
  const { seed, auth_url } = cloud
  const held = `/users/${seed.users[user]}/roles/${seed.roles[role] ?? role}`
  const url = `${auth_url}/projects/${seed.projects[project]}${held}`
  yield* expected(asking(method, url, { token: yield* cloud.adminToken }))
})

/** Keystone's response when it validates a token. */
export const validate = Effect.fnUntraced(function* (cloud: Cloud, subject: string) {
  const headers = { "x-subject-token": subject }
  const token = yield* cloud.adminToken
  return yield* asking("GET", `${cloud.auth_url}/auth/tokens?nocatalog`, { token, headers })
})

/** Stores a secret as its project's user. Returns the href. */
export const putSecret = Effect.fnUntraced(function* (
  cloud: Cloud,
  [user, project]: readonly [User, Project],
  payload: Uint8Array,
  kind: "text" | "bytes",
) {
  const token = yield* cloud.tokenOf(user, project)
  const text = Buffer.from(payload)
  const body =
    kind === "text"
      ? { payload: text.toString("utf8"), payload_content_type: "text/plain" }
      : {
          payload: text.toString("base64"),
          payload_content_type: "application/octet-stream",
          payload_content_encoding: "base64",
        }
  const url = `${baseOf(cloud.place, "barbican")}/v1/secrets`
  return (yield* expected(asking("POST", url, { token, body }))).secret_ref as string
})

const manilaOf = ({ place }: Cloud) => `${baseOf(place, "manila")}/v2`

export interface ShareWish {
  readonly user?: User
  readonly project?: Project
  readonly type?: ShareType
}

/** Creates a share with these files as its project's user. Returns its id. */
export const makeShare = Effect.fnUntraced(function* (
  cloud: Cloud,
  files: Readonly<Record<string, string>>,
  { user = "alice", project = "tenant-a", type = "default" }: ShareWish = {},
) {
  const token = yield* cloud.tokenOf(user, project)
  const share = { share_proto: "NFS", size: 1, name: `share-${v7()}`, share_type: type }
  const url = `${manilaOf(cloud)}/shares`
  const { id } = (yield* expected(asking("POST", url, { token, body: { share } }))).share
  yield* until(
    expected(asking("GET", `${url}/${id}`, { token })),
    ({ share }) => share.status === "available",
  )
  const path = yield* exportFolder(cloud, id)
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(dirname(join(path, name)), { recursive: true })
    writeFileSync(join(path, name), text)
  }
  return id as string
})

/** The folder behind a share. */
export const exportFolder = Effect.fnUntraced(function* (cloud: Cloud, id: string) {
  const url = `${manilaOf(cloud)}/shares/${id}/export_locations`
  const body = yield* expected(asking("GET", url, { token: yield* cloud.adminToken }))
  return String(body.export_locations[0].path).replace("127.0.0.1:", "")
})

export const unexport = Effect.fnUntraced(function* (cloud: Cloud, id: string) {
  rmSync(yield* exportFolder(cloud, id), { recursive: true })
})

/** Queries Manila as its administrator, for the actual state. */
export const manilaSays = Effect.fnUntraced(function* (cloud: Cloud, path: string) {
  return yield* asking("GET", `${manilaOf(cloud)}${path}`, { token: yield* cloud.adminToken })
})
