/**
 * Policy rules to evaluate with the real oslo.policy, and the worlds to evaluate them in.
 *
 * `recorded.jsonl` holds its results. To record them again:
 *
 *     cd test/gateway/policy && python3 -m venv V && V/bin/pip install oslo.policy==4.0.0
 *     node cases.ts | V/bin/python record.py > recorded.jsonl
 */
import * as fc from "fast-check"
import type { Attributes } from "#schemas/policy-check.ts"
import type { Rule } from "#schemas/policy-rule.ts"

/** The context of a rule: the other rules, the target and the caller's credentials. */
export interface World {
  readonly rules: Readonly<Record<string, Rule>>
  readonly target: Attributes
  readonly creds: Attributes
}

const beside = {
  owner: "project_id:%(project_id)s",
  admin: "role:admin",
  admin_or_owner: "rule:admin or rule:owner",
  open: "",
  closed: "!",
  broken: "role:admin and",
  once: "rule:twice",
  twice: "rule:once or role:admin",
  old: [["role:admin", "rule:owner"], "role:reader"],
}

const project = { project_id: "p1", domain_id: "d1", size: 7, locked: false, none: null }
const no_credentials = {
  user_id: null,
  project_id: null,
  domain_id: null,
  roles: [],
  system_scope: null,
  is_admin_project: true,
}

export const worlds: ReadonlyArray<World> = [
  { rules: beside, target: {}, creds: no_credentials },
  {
    rules: beside,
    target: project,
    creds: { ...no_credentials, project_id: "p1", roles: ["member"] },
  },
  {
    rules: beside,
    target: project,
    creds: { ...no_credentials, project_id: "p2", roles: ["Admin"] },
  },
  {
    rules: { ...beside, default: "role:member" },
    target: { ...project, "target.role": "member", rate: "50%" },
    creds: {
      ...no_credentials,
      user_id: "u1",
      project_id: "p1",
      roles: ["member", "READER"],
      groups: [{ name: "g1" }, { name: "p1" }],
      token: { project: { id: "p1", names: ["x", "p1"] }, depth: 7, is_admin: true },
    },
  },
  {
    rules: { ...beside, default: "!" },
    target: { domain_id: "d1", project_id: "True" },
    creds: { ...no_credentials, domain_id: "d1", system_scope: "all", roles: ["svc_domain_owner"] },
  },
  { rules: { default: "@" }, target: { domain_id: "None" }, creds: { roles: ["admin"] } },
]

/** Typical checks. */
const plain = [
  "@",
  "!",
  "role:admin",
  "role:ADMIN",
  "role:member",
  "role:svc_domain_owner",
  "role:",
  "role:%(target.role)s",
  "role:%(missing)s",
  "rule:owner",
  "rule:admin",
  "rule:missing",
  "rule:admin_or_owner",
  "rule:open",
  "rule:closed",
  "rule:broken",
  "rule:old",
  "roles:member",
  "project_id:%(project_id)s",
  "domain_id:%(domain_id)s",
  "project_id:p1",
  "user_id:u1",
  "user_id:None",
  "is_admin_project:True",
  "system_scope:all",
  "missing:x",
  "True:True",
  "True:%(locked)s",
  "False:%(locked)s",
  "None:%(none)s",
  "7:%(size)s",
  "-7:%(size)s",
  "'p1':%(project_id)s",
  '"p1":%(project_id)s',
  "token.project.id:%(project_id)s",
  "token.project.names:p1",
  "token.depth:7",
  "token.is_admin:True",
  "groups.name:%(project_id)s",
  "groups.missing:x",
]

/** Words that other parsers reject, and words that are easily misread. */
const odd = [
  "+7:%(size)s",
  "07:%(size)s",
  "'p1:p1",
  "user_id.x:u1",
  "project_id.x:p1",
  "project-id:p1",
  "a..b:x",
  "1a:x",
  "is:x",
  "in.x:y",
  "nonsense",
  "",
  "::",
  ":x",
  "x:",
  "%(x)s:y",
  "rate:5%%",
  "role:a%%b",
  "'text'",
  '"a',
  "__proto__:x",
  "constructor:x",
  "role:%(toString)s",
  "@)",
  "True:True)",
  "(role:admin",
  "((@))",
  "@@",
  "rule:once",
  "roles:x",
  "groups:x",
  "'':",
]

const words = [...plain, ...odd]
const word = fc.oneof(
  { weight: 15, arbitrary: fc.constantFrom(...plain) },
  { weight: 1, arbitrary: fc.constantFrom(...odd) },
)
const sign = fc.constantFrom("and", "or", "AND", "Or")
const not = fc.constantFrom("not ", "NOT ", "not not ", "", "", "")

const sound: fc.Arbitrary<string> = fc.letrec<{ rule: string; part: string }>((tie) => ({
  part: fc.oneof(
    { maxDepth: 2, depthSize: "small" },
    { weight: 4, arbitrary: fc.tuple(not, word).map(([no, one]) => no + one) },
    { weight: 1, arbitrary: fc.tuple(not, tie("rule")).map(([no, rule]) => `${no}(${rule})`) },
    { weight: 1, arbitrary: tie("rule").map((rule) => `( ${rule} )`) },
  ),
  rule: fc
    .tuple(tie("part"), fc.array(fc.tuple(sign, tie("part")), { maxLength: 3 }))
    .map(([first, more]) => [first, ...more.flat()].join(" ")),
})).rule

const noise = fc
  .array(fc.oneof(word, sign, fc.constantFrom("not", "(", ")", "))", "  ", "\t")), { maxLength: 6 })
  .map((parts) => parts.join(" "))

const list = fc.array(fc.oneof(word, fc.array(word, { maxLength: 3 })), { maxLength: 3 })

/** Typical rules, invalid rules, and rules in the older form. */
export const rule: fc.Arbitrary<Rule> = fc.oneof(
  { weight: 6, arbitrary: sound },
  { weight: 2, arbitrary: noise },
  { weight: 1, arbitrary: list },
)

/** Each word alone, and rules generated from a seed. */
const rules = () => [
  ...words,
  ...words.map((one) => `not ${one}`),
  ...fc.sample(rule, { seed: 20_261_121, numRuns: 600 }),
]

if (import.meta.main) process.stdout.write(JSON.stringify({ worlds, rules: rules() }))
