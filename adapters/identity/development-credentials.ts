/**
 * The development principals and the file with their tokens.
 * Source: decisions, "development principals" and "safety of defaults".
 */
import { join } from "node:path"
import { Clock, Effect, Option, Redacted, Schema } from "effect"
import { v7 } from "uuid"
import { sharedId } from "#adapters/identity/shared-key.ts"
import {
  newToken,
  sha256Of,
  type TokenRecord,
  type TokenStore,
  token_pattern,
  unavailable,
} from "#adapters/identity/token-store.ts"
import { findBounded, writePrivate } from "#files"
import type { Caller } from "#gateway/caller.ts"
import { IdentityUnavailable } from "#gateway/identity.ts"
import { PrincipalId, scopes } from "#schemas/token.ts"

const Token = Schema.String.check(Schema.isPattern(token_pattern))

const Tenant = Schema.Struct({
  token: Token,
  user_id: PrincipalId,
  project_id: PrincipalId,
  trust_id: PrincipalId,
  share_id: PrincipalId,
})

/** The read-only subscriber of the bus. */
export const NatsCredentials = Schema.Struct({
  url: Schema.String,
  user: Schema.String,
  password: Schema.String,
  /** Of `nats.subscribers`, by name. */
  subscribers: Schema.optionalKey(
    Schema.Record(
      Schema.String,
      Schema.Struct({
        user: Schema.String,
        password: Schema.String,
        inbox_prefix: Schema.String,
      }),
    ),
  ),
})

export type NatsCredentials = typeof NatsCredentials.Type

const principals = {
  blob: Schema.Struct({ token: Token }),
  blob_read: Schema.Struct({ token: Token }),
  tenant: Tenant,
  tenant_b: Tenant,
  domain_owner: Schema.Struct({ token: Token, domain_id: PrincipalId, project_id: PrincipalId }),
  admin: Schema.Struct({ token: Token }),
}

/** The principals in the file; the bus credentials are from the start that wrote it. */
export const Principals = Schema.Struct(principals)
export type Principals = typeof Principals.Type

export const DevelopmentCredentials = Schema.Struct({ ...principals, nats: NatsCredentials })
export type DevelopmentCredentials = typeof DevelopmentCredentials.Type

const file_bytes_max = 2 ** 16

export const developmentCredentialsPath = (data_dir: string) =>
  join(data_dir, "dev-credentials.json")

/**
 * Reads the principals of `dev-credentials.json`. If the file is missing, creates new ones and
 * revokes those of an earlier file. Rewrites the file (0600) with this start's `nats`.
 */
export const developmentCredentials = Effect.fnUntraced(function* (
  data_dir: string,
  store: TokenStore,
  nats: NatsCredentials,
  secret: Redacted.Redacted = Redacted.make(""),
) {
  const path = developmentCredentialsPath(data_dir)
  const text = yield* Effect.mapError(findBounded(path, file_bytes_max), unavailable)
  const found = Option.isNone(text) ? newPrincipals(secret) : yield* decoded(path, text.value)
  const credentials: DevelopmentCredentials = { ...found, nats }
  const file = `${JSON.stringify(credentials, undefined, 2)}\n`
  // The file first: a created token is always visible, even after a crash in between.
  yield* Effect.mapError(writePrivate(path, file), unavailable)
  const created_at = yield* Clock.currentTimeMillis
  const records = recordsOf(found, created_at)
  yield* store.update((existing) => [
    ...existing.filter(({ kind }) => kind !== "development"),
    ...records,
  ])
  return credentials
})

const File = Schema.fromJsonString(Principals)

const decoded = (path: string, text: string) =>
  Effect.mapError(
    Schema.decodeUnknownEffect(File)(text),
    () =>
      new IdentityUnavailable({
        message: `${path} is damaged: delete it to get new development tokens`,
      }),
  )

const newPrincipals = (secret: Redacted.Redacted): Principals => {
  const tenant = () => ({
    token: newToken(),
    user_id: v7(),
    project_id: v7(),
    trust_id: v7(),
    share_id: v7(),
  })
  return {
    blob: { token: newToken() },
    blob_read: { token: newToken() },
    tenant: tenant(),
    tenant_b: tenant(),
    // Shared by all processes of a deployment, because all projects and users are in it.
    domain_owner: { token: newToken(), domain_id: sharedId(secret, "domain"), project_id: v7() },
    admin: { token: newToken() },
  }
}

const member = ["member"]
const domain_owner = ["svc_domain_owner"]
const admin = ["admin", "svc_admin"]

const recordsOf = (of: Principals, created_at: number): ReadonlyArray<TokenRecord> => {
  const record = (
    name: string,
    { token }: { readonly token: string },
    grant: Partial<TokenRecord>,
  ): TokenRecord => ({
    sha256: sha256Of(token),
    name,
    kind: "development",
    scopes: [],
    roles: [],
    project_id: null,
    domain_id: null,
    user_id: null,
    created_at,
    expires_at: null,
    ...grant,
  })
  const tenant = ({ project_id, user_id }: Principals["tenant"]) => ({
    roles: member,
    project_id,
    user_id,
  })
  const { domain_id } = of.domain_owner
  return [
    record("blob", of.blob, { scopes }),
    record("blob_read", of.blob_read, { scopes: ["blobs:read"] }),
    record("tenant", of.tenant, tenant(of.tenant)),
    record("tenant_b", of.tenant_b, tenant(of.tenant_b)),
    record("domain_owner", of.domain_owner, { roles: domain_owner, domain_id }),
    record("admin", of.admin, { roles: admin }),
  ]
}

/** The caller of every request while `api.noauth` is set: the tenant with all roles. */
export const unrestrictedCaller = ({ tenant, domain_owner: owner }: Principals): Caller => ({
  actor: `user:${tenant.user_id}`,
  kind: "noauth",
  scopes: new Set(scopes),
  roles: new Set([...member, ...domain_owner, ...admin]),
  project_id: tenant.project_id,
  domain_id: owner.domain_id,
  user_id: tenant.user_id,
})
