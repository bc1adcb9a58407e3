/**
 * What a caller needs for an endpoint.
 *
 * Each endpoint carries this as an annotation, and the front door reads it: there is no other
 * place where access is decided. Source: document 1 §5, document 2 §5.
 */
import { Context } from "effect"
import type { Caller } from "#gateway/caller.ts"
import type { Attributes } from "#schemas/policy-check.ts"
import { allows, type Rules } from "#schemas/policy-rule.ts"
import type { Settings } from "#schemas/settings.ts"

export type Access =
  /** Nobody is asked who they are. */
  | "public"
  /** Whoever is known, whatever they may do. */
  | "authenticated"
  /** One of these scopes or roles. */
  | { readonly scopes?: ReadonlyArray<string>; readonly roles?: ReadonlyArray<string> }
  /** What the policy rule of this name says. */
  | { readonly rule: string }

/** The annotation. Without one an endpoint is the operators' alone: forgetting locks the door. */
export const Needs = Context.Reference<Access>("gateway/Needs", {
  defaultValue: () => ({ roles: ["admin"] }),
})

/** The policy rules that hold now; without any, no rule lets anybody in. */
export const PolicyRules = Context.Reference<() => Rules>("gateway/PolicyRules", {
  defaultValue: () => () => no_rules,
})

const no_rules: Rules = new Map()

/** Whether these settings ask no caller to authenticate. */
export const isOpen = (
  {
    access,
    publicWhen,
  }: { readonly access: Access; readonly publicWhen: (settings: Settings) => boolean },
  settings: Settings,
): boolean => access === "public" || publicWhen(settings)

/** Whether the caller has what the endpoint needs. */
export const mayEnter = (access: Access, caller: Caller, rules: () => Rules): boolean => {
  if (typeof access === "string") return true
  if ("rule" in access) return allows(rules(), access.rule, scopeOf(caller), credentialsOf(caller))
  return holdsOne(caller.scopes, access.scopes) || holdsOne(caller.roles, access.roles)
}

const holdsOne = (held: ReadonlySet<string>, wanted: ReadonlyArray<string> = []) =>
  wanted.some((name) => held.has(name))

/** A rule's target: the project or the domain that the token is scoped to, by these names. */
const scopeOf = ({ project_id, domain_id }: Caller): Attributes => ({
  ...(project_id !== undefined && { project_id }),
  ...(domain_id !== undefined && { domain_id }),
})

/** A rule's credentials, by the names that OpenStack's services give them. */
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
