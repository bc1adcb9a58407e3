/** In-memory trusts and secrets. */
import { randomUUID } from "node:crypto"
import { Effect, Layer, Redacted } from "effect"
import { type Delegation, denials, Trusts } from "#actors/share-protection/ports/trusts.ts"
import { secret_denied, secretIdOf, Vault } from "#actors/share-protection/ports/vault.ts"
import { ProjectId } from "#schemas/share-protection/id.ts"
import { TrustAccessDenied } from "#schemas/share-protection/rejection.ts"

/** The trusts and secrets of tenants. */
export interface Tenants {
  /** Projects by trust; a missing trust was revoked. */
  readonly trusts: Map<string, string>
  /** Secrets by UUID, oldest first. */
  readonly secrets: Map<string, { project_id: string; name: string; payload: string }>
  /** Every issued token, with its project. */
  readonly tokens: Map<string, string>
}

export const noTenants = (): Tenants => ({
  trusts: new Map(),
  secrets: new Map(),
  tokens: new Map(),
})

const denied = (detail: string) => Effect.fail(new TrustAccessDenied({ detail }))

export const trustsMemory = ({ trusts, tokens }: Tenants) =>
  Layer.succeed(Trusts, {
    verify: (trust_id, { project_id }) =>
      trusts.get(trust_id) === project_id ? Effect.void : denied(denials.foreign),
    redeem: (trust_id) =>
      Effect.suspend((): Effect.Effect<Delegation, TrustAccessDenied> => {
        const project_id = trusts.get(trust_id)
        if (project_id === undefined) return denied(denials.gone)
        const token = `token-${randomUUID()}`
        tokens.set(token, project_id)
        return Effect.succeed({
          project_id: ProjectId.make(project_id),
          token: Redacted.make(token),
        })
      }),
    service: Effect.succeed({
      service_user: { id: "service", name: "service" },
      worker_project: { id: "workers", name: "workers" },
    }),
  })

export const vaultMemory = ({ secrets, tokens }: Tenants) => {
  const inProject = ({ token }: Delegation) => tokens.get(Redacted.value(token))
  const find = (by: Delegation, href: string) => {
    const id = secretIdOf(href) ?? ""
    const secret = secrets.get(id)
    return secret?.project_id === inProject(by) ? { id, secret } : undefined
  }
  return Layer.succeed(Vault, {
    read: (by, href) =>
      Effect.suspend(() => {
        const secret = find(by, href)?.secret
        return secret ? Effect.succeed(Redacted.make(secret.payload)) : denied(secret_denied)
      }),
    store: (by, { name, payload }) =>
      Effect.suspend(() => {
        const project_id = inProject(by)
        if (project_id === undefined) return denied(denials.gone)
        return Effect.succeed(keepSecret(secrets, project_id, name, Redacted.value(payload)))
      }),
    find: (by, name) =>
      Effect.sync(() => {
        const [id] =
          [...secrets].findLast(
            ([, secret]) => secret.project_id === inProject(by) && secret.name === name,
          ) ?? []
        return id && hrefOf(id)
      }),
    remove: (by, href) => Effect.sync(() => void secrets.delete(find(by, href)?.id ?? "")),
  })
}

const hrefOf = (id: string) => `https://vault.example/v1/secrets/${id}`

/** Stores a secret as a tenant does; returns its href. */
export const keepSecret = (
  secrets: Tenants["secrets"],
  project_id: string,
  name: string,
  payload: string,
) => {
  const id = randomUUID()
  secrets.set(id, { project_id, name, payload })
  return hrefOf(id)
}
