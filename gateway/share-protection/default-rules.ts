/**
 * Default access rules without a policy file, in oslo.policy syntax.
 *
 * Source: document 2 §5; DECISIONS, document 2, default policy rules.
 */
import type { Rule } from "#schemas/policy-rule.ts"

const service = "share-protection"

/** `share-protection:<noun>:<operation>` for each of these operations, with the rule `rule`. */
const named = (rule: string, operations: Readonly<Record<string, ReadonlyArray<string>>>) =>
  Object.entries(operations).flatMap(([noun, names]) =>
    names.map((name) => [`${service}:${noun}:${name}`, rule] as const),
  )

const bases = {
  "share-protection:tenant": "(role:member or role:admin) and project_id:%(project_id)s",
  "share-protection:domain_owner": "role:svc_domain_owner and domain_id:%(domain_id)s",
  "share-protection:tenant_or_domain_owner":
    "rule:share-protection:tenant or rule:share-protection:domain_owner",
  "share-protection:operator": "role:admin",
  "share-protection:upgrader": "role:svc_admin",
}

const tenant = named("rule:share-protection:tenant", {
  policies: ["list", "create", "get", "update", "delete", "preview_retention"],
  backups: ["list", "create", "get", "undelete", "delete"],
  restores: ["list", "create", "get"],
  jobs: ["cancel"],
  usage: ["get"],
})

const reading = { targets: ["list", "get", "preflight"], jobs: ["list", "get"] }
const registering = { targets: ["create", "update", "delete", "enroll"] }

/** Buckets belong to tenants. */
const shape_a = named("rule:share-protection:tenant", {
  targets: [...reading.targets, ...registering.targets],
  jobs: reading.jobs,
})

/** Domain owners register buckets, and see them and their enrollment jobs. */
const shape_b = [
  ...named("rule:share-protection:tenant_or_domain_owner", {
    ...reading,
    target_templates: ["list", "get"],
  }),
  ...named("rule:share-protection:domain_owner", {
    ...registering,
    target_templates: ["create", "update", "delete"],
  }),
]

const operators = named("rule:share-protection:operator", {
  "admin:workers": ["list", "drain", "retire"],
  "admin:jobs": ["list", "get", "retry", "cancel"],
  "admin:coverage": ["list"],
  "admin:target_templates": ["list"],
  "admin:targets": ["list"],
  "admin:scheduling": ["get", "pause", "resume"],
  "admin:reconciliation": ["get", "trigger"],
  "admin:system": ["health"],
  "admin:domains": ["get", "update"],
  "admin:rollouts": ["list", "create", "get"],
})

/** The rule of each operation of a shape, and the rules they refer to. */
export const defaultRules = (shape: "A" | "B"): Readonly<Record<string, Rule>> =>
  Object.fromEntries([
    ...Object.entries(bases),
    ...tenant,
    ...(shape === "A" ? shape_a : shape_b),
    ...operators,
    ...named("rule:share-protection:upgrader", { "admin:targets": ["repo_format_upgrade"] }),
  ])
