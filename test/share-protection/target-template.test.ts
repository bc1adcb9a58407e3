import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import { TargetTemplate } from "#actors/share-protection/target-template.ts"
import {
  TargetTemplateCreated,
  TargetTemplateDeleted,
  type TargetTemplateEvent,
  TargetTemplateUpdated,
  TemplatePolicyDeregistered,
  TemplatePolicyRegistered,
  TemplateTargetDeregistered,
  TemplateTargetRegistered,
} from "#events/share-protection/target-template.ts"
import {
  CreateTargetTemplate,
  DeleteTargetTemplate,
  DeregisterTemplatePolicy,
  DeregisterTemplateTarget,
  RegisterTemplatePolicy,
  RegisterTemplateTarget,
  UpdateTargetTemplate,
} from "#schemas/share-protection/target-template.ts"
import {
  longest_domain_id,
  longestName,
  longestRef,
  longestUrl,
  retention,
  template,
} from "../world/share-protection/samples.ts"
import { assertStorable, everyState } from "../world/state-table.ts"

const created = TargetTemplateCreated.make(template)
const updated = TargetTemplateUpdated.make({ name: "Another" })
const deleted = TargetTemplateDeleted.make({})
const target_registered = TemplateTargetRegistered.make({})
const target_deregistered = TemplateTargetDeregistered.make({})
const policy_registered = TemplatePolicyRegistered.make({})
const policy_deregistered = TemplatePolicyDeregistered.make({})

const states = {
  absent: [],
  present: [created],
  "referenced by a target": [created, target_registered],
  "referenced by a policy": [created, policy_registered],
  "referenced no more": [
    created,
    target_registered,
    policy_registered,
    policy_deregistered,
    target_deregistered,
  ],
  renamed: [created, updated],
  deleted: [created, deleted],
} satisfies Record<string, ReadonlyArray<TargetTemplateEvent>>

const gone = { absent: "svc.not_found", deleted: "svc.not_found" } as const
const conflict = "svc.conflict"
const dependents = "svc.target_has_dependents"

const known = (...events: ReadonlyArray<TargetTemplateEvent>) =>
  events.reduce(TargetTemplate.evolve, TargetTemplate.initialState).context

describe("a target template", () => {
  everyState(TargetTemplate, states, {
    CreateTargetTemplate: [
      {
        command: CreateTargetTemplate.make(template),
        in: { absent: [created] },
        otherwise: conflict,
      },
    ],
    UpdateTargetTemplate: [
      {
        with: "of its name",
        command: UpdateTargetTemplate.make({ name: "Another" }),
        in: { ...gone, renamed: [] },
        otherwise: [updated],
      },
      {
        with: "of its name, and of a retention that stays",
        command: UpdateTargetTemplate.make({ name: "Another", default_retention: retention }),
        in: { ...gone, renamed: [] },
        otherwise: [updated],
      },
      {
        with: "of its retention to none",
        command: UpdateTargetTemplate.make({ default_retention: null }),
        in: gone,
        otherwise: [TargetTemplateUpdated.make({ default_retention: null })],
      },
      {
        with: "of a rule of its retention",
        command: UpdateTargetTemplate.make({ default_retention: { ...retention, keep_last: 4 } }),
        in: gone,
        otherwise: [
          TargetTemplateUpdated.make({ default_retention: { ...retention, keep_last: 4 } }),
        ],
      },
      {
        with: "of nothing",
        command: UpdateTargetTemplate.make({}),
        in: gone,
        otherwise: [],
      },
    ],
    RegisterTemplateTarget: [
      { command: RegisterTemplateTarget.make({}), in: gone, otherwise: [target_registered] },
    ],
    DeregisterTemplateTarget: [
      {
        command: DeregisterTemplateTarget.make({}),
        in: { ...gone, "referenced by a target": [target_deregistered] },
        otherwise: [],
      },
    ],
    RegisterTemplatePolicy: [
      { command: RegisterTemplatePolicy.make({}), in: gone, otherwise: [policy_registered] },
    ],
    DeregisterTemplatePolicy: [
      {
        command: DeregisterTemplatePolicy.make({}),
        in: { ...gone, "referenced by a policy": [policy_deregistered] },
        otherwise: [],
      },
    ],
    DeleteTargetTemplate: [
      {
        command: DeleteTargetTemplate.make({}),
        in: {
          ...gone,
          "referenced by a target": dependents,
          "referenced by a policy": dependents,
        },
        otherwise: [deleted],
      },
    ],
  })

  it("has the fields of its creation, later updates and its number of references", () =>
    assert.deepEqual(
      known(
        created,
        target_registered,
        target_registered,
        policy_registered,
        updated,
        target_deregistered,
      ),
      { ...template, name: "Another", targets: 1, policies: 1 },
    ))

  it("ignores impossible updates and removals of references", () => {
    assert.throws(() => known(updated), /cannot happen/)
    assert.throws(() => known(created, target_deregistered), /cannot happen/)
    assert.throws(() => known(created, policy_deregistered), /cannot happen/)
    assert.throws(() => known(created, target_registered, deleted), /cannot happen/)
  })

  it("fits in a snapshot with every field at its longest", () => {
    const name = longestName()
    assertStorable(TargetTemplate, [
      TargetTemplateCreated.make({
        ...template,
        name,
        region: name,
        provider: name,
        domain_id: longest_domain_id,
        endpoint: longestUrl(),
        ca_cert_ref: longestRef(),
        default_retention: { keep_last: 1e6, keep_daily: 1e6, keep_weekly: 1e6, keep_monthly: 1e6 },
      }),
    ])
  })
})

describe("a template's fields", () => {
  const is = Schema.is(CreateTargetTemplate)
  const all = { type: "CreateTargetTemplate", ...template }
  const right = [
    { region: null, provider: null, default_retention: null },
    { bucket_scheme: "shared", addressing_mode: "virtual" },
    { endpoint: "http://127.0.0.1:7480" },
  ]
  const wrong = [
    { name: "" },
    { name: undefined },
    { bucket_scheme: "one" },
    { addressing_mode: "host" },
    { endpoint: "s3.example.org" },
    { ca_cert_ref: "/etc/ssl/ca.pem" },
    { default_retention: {} },
    { domain_id: "a.b" },
  ]
  it("are validated", () => {
    assert.isTrue(is(all))
    for (const fields of right) assert.isTrue(is({ ...all, ...fields }), JSON.stringify(fields))
    for (const fields of wrong) assert.isFalse(is({ ...all, ...fields }), JSON.stringify(fields))
  })
})
