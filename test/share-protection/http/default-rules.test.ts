import { describe, expect, it } from "vitest"
import { mayUse } from "#gateway/access.ts"
import type { Caller } from "#gateway/caller.ts"
import { defaultRules } from "#gateway/share-protection/default-rules.ts"
import { parseRule } from "#schemas/policy-rule.ts"

const caller = (roles: ReadonlyArray<string>, scope: Partial<Caller> = {}): Caller => ({
  actor: "a",
  kind: "issued",
  scopes: new Set(),
  roles: new Set(roles),
  ...scope,
})

const project = { project_id: "p1", project_domain_id: "d1", user_id: "u1" }
const domain = { domain_id: "d1", user_id: "u2" }

/** Operations without the service name as prefix. */
const tenant = [
  "targets:preflight",
  "targets:list",
  "targets:get",
  "jobs:list",
  "jobs:get",
  "jobs:cancel",
  "policies:list",
  "policies:create",
  "policies:get",
  "policies:update",
  "policies:delete",
  "backups:list",
  "backups:create",
  "backups:get",
  "backups:undelete",
  "backups:delete",
  "policies:preview_retention",
  "restores:list",
  "restores:create",
  "restores:get",
  "usage:get",
]
const registering = ["targets:create", "targets:update", "targets:delete", "targets:enroll"]
const reading_templates = ["target_templates:list", "target_templates:get"]
const owner = [
  "targets:list",
  "targets:get",
  "targets:preflight",
  "jobs:list",
  "jobs:get",
  "target_templates:create",
  "target_templates:update",
  "target_templates:delete",
  ...registering,
  ...reading_templates,
]
const operator = [
  "workers:list",
  "workers:drain",
  "workers:retire",
  "jobs:list",
  "jobs:get",
  "jobs:retry",
  "jobs:cancel",
  "coverage:list",
  "target_templates:list",
  "targets:list",
  "system:health",
  "scheduling:get",
  "scheduling:pause",
  "scheduling:resume",
  "domains:get",
  "domains:update",
  "reconciliation:get",
  "reconciliation:trigger",
  "rollouts:list",
  "rollouts:create",
  "rollouts:get",
].map((name) => `admin:${name}`)
const upgrade = "admin:targets:repo_format_upgrade"

const inBoth = (operations: ReadonlyArray<string>) => ({ A: operations, B: operations })

const cases: ReadonlyArray<
  readonly [string, Caller, Readonly<Record<"A" | "B", ReadonlyArray<string>>>]
> = [
  [
    "a member of a project",
    caller(["member"], project),
    { A: [...tenant, ...registering], B: [...tenant, ...reading_templates] },
  ],
  [
    "an admin of a project",
    caller(["admin"], project),
    {
      A: [...tenant, ...registering, ...operator],
      B: [...tenant, ...reading_templates, ...operator],
    },
  ],
  ["a reader of a project", caller(["reader"], project), inBoth([])],
  ["a member of nothing", caller(["member"]), inBoth([])],
  ["a member of a domain", caller(["member"], domain), inBoth([])],
  ["a domain's owner", caller(["svc_domain_owner"], domain), { A: [], B: owner }],
  ["a domain's owner in a project", caller(["svc_domain_owner"], project), inBoth([])],
  ["an operator", caller(["admin", "svc_admin"]), inBoth([...operator, upgrade])],
  ["an operator without svc_admin", caller(["Admin"]), inBoth(operator)],
  ["who upgrades only", caller(["svc_admin"]), inBoth([upgrade])],
]

describe.each(["A", "B"] as const)("by the default rules of Shape %s", (shape) => {
  const rules = new Map(
    Object.entries(defaultRules(shape)).map(([name, rule]) => [name, parseRule(rule)]),
  )
  const operations = [...rules.keys()].filter((name) => name.split(":").length > 2)

  it("no rule has a mistake in it", () =>
    expect([...rules].filter(([, { problem }]) => problem !== undefined)).toEqual([]))

  it.each(cases)("%s may do what the decisions say, and nothing else", (_name, who, allowed) => {
    const may = operations.filter((name) => mayUse({ rule: name }, who, () => rules))
    const expected = allowed[shape].map((name) => `share-protection:${name}`)
    expect(may.toSorted()).toEqual(expected.toSorted())
  })
})
