/**
 * Access to endpoints: the annotations that declare it, and the decision.
 *
 * The door reads the annotations of each endpoint; no other code decides access.
 * Source: document 1 §5, document 2 §5.
 */
import { Context } from "effect"
import type { Caller } from "#gateway/caller.ts"
import type { Attributes } from "#schemas/policy-check.ts"
import { allows, type Rules } from "#schemas/policy-rule.ts"
import type { Settings } from "#schemas/settings.ts"

export type Access =
  /** No credentials are needed. */
  | "public"
  /** Any authenticated caller. */
  | "authenticated"
  /** One of these scopes or roles. */
  | { readonly scopes?: ReadonlyArray<string>; readonly roles?: ReadonlyArray<string> }
  /** The policy rule of this name allows it. */
  | { readonly rule: string }

/**
 * Annotation of an endpoint with its access. Without it only admins may use the endpoint, which is
 * the safe default.
 */
export const Needs = Context.Reference<Access>("gateway/Needs", {
  defaultValue: () => ({ roles: ["admin"] }),
})

type PublicWhen = (settings: Settings) => boolean

/** Settings that make an endpoint public, regardless of its `Needs` are. */
export const PublicWhen = Context.Reference<PublicWhen | undefined>("gateway/PublicWhen", {
  defaultValue: () => undefined,
})

/** The current policy rules; by default there are none, and every check of a rule fails. */
export const PolicyRules = Context.Reference<() => Rules>("gateway/PolicyRules", {
  defaultValue: () => () => no_rules,
})

const no_rules: Rules = new Map()

interface Declared {
  readonly access: Access
  readonly publicWhen: PublicWhen | undefined
}

/** Whether the endpoint is public with these settings. */
export const isPublic = ({ access, publicWhen }: Declared, settings: Settings): boolean =>
  access === "public" || publicWhen?.(settings) === true

/** Whether the caller may use the endpoint. */
export const mayUse = (access: Access, caller: Caller, rules: () => Rules): boolean => {
  if (typeof access === "string") return true
  if ("rule" in access) return allows(rules(), access.rule, scopeOf(caller), credentialsOf(caller))
  return holdsOne(caller.scopes, access.scopes) || holdsOne(caller.roles, access.roles)
}

const holdsOne = (granted: ReadonlySet<string>, required: ReadonlyArray<string> = []) =>
  required.some((name) => granted.has(name))

/**
 * A rule's target: the project or the domain that the token is scoped to, under OpenStack's names.
 */
const scopeOf = ({ project_id, domain_id }: Caller): Attributes => ({
  ...(project_id !== undefined && { project_id }),
  ...(domain_id !== undefined && { domain_id }),
})

/** A rule's credentials, under the names that OpenStack's services use. */
const credentialsOf = (caller: Caller): Attributes => ({
  user_id: caller.user_id ?? null,
  user_domain_id: caller.user_domain_id ?? null,
  project_id: caller.project_id ?? null,
  project_domain_id: caller.project_domain_id ?? null,
  domain_id: caller.domain_id ?? null,
  roles: [...caller.roles],
  system_scope: null,
  is_admin_project: true,
})
