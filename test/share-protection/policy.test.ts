import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import { Policy } from "#actors/share-protection/policy.ts"
import {
  PolicyDefined,
  PolicyDeleted,
  type PolicyEvent,
  PolicyUpdated,
  ShareBackupFinished,
  ShareBackupStarted,
  TickSkipped,
} from "#events/share-protection/policy.ts"
import type { PolicyId } from "#schemas/share-protection/id.ts"
import {
  DefinePolicy,
  DeletePolicy,
  FinishShareBackup,
  isReadable,
  SkipReason,
  SkipTick,
  StartShareBackup,
  UpdatePolicy,
} from "#schemas/share-protection/policy.ts"
import { given } from "../world/given.ts"
import {
  a_moment_before,
  at,
  backup_id,
  later,
  longest,
  longest_project_id,
  longestName,
  other_backup_id,
  other_policy_id,
  policy,
  policy_id,
  project_id,
  target_id,
} from "../world/share-protection/samples.ts"
import { assertStorable, everyState } from "../world/state-table.ts"

const started = (policy_id: PolicyId | null, tick: string | null) =>
  ShareBackupStarted.make({ backup_id, policy_id, tick })
const skipped = (tick: string) => TickSkipped.make({ policy_id, tick, reason: "repository_locked" })
const updated = (changes: object) => PolicyUpdated.make({ policy_id, ...changes })

const defined = PolicyDefined.make(policy)
const deleted = PolicyDeleted.make({ policy_id, project_id })
const finished = ShareBackupFinished.make({ backup_id })
const on_demand = started(null, null)
const of_policy = started(policy_id, null)

const states = {
  "there is no policy": [],
  "there is one": [defined],
  "it is not enabled": [defined, updated({ enabled: false })],
  "it was deleted": [defined, deleted],
  "a backup without a policy is under way, and there is none": [on_demand],
  "a backup without a policy is under way": [defined, on_demand],
  "a backup of it is under way": [defined, of_policy],
  "a backup of it has ended": [defined, of_policy, finished],
  "a tick was taken": [defined, started(policy_id, at), finished],
  "a tick was skipped": [defined, skipped(at)],
  "there is another": [defined, deleted, PolicyDefined.make({ ...policy, id: other_policy_id })],
} satisfies Record<string, ReadonlyArray<PolicyEvent>>

const not_found = "svc.not_found"
const conflict = "svc.conflict"

/** The same outcome in each state in which the share does not have the policy. */
const without = <const Outcome>(outcome: Outcome) => ({
  "there is no policy": outcome,
  "it was deleted": outcome,
  "a backup without a policy is under way, and there is none": outcome,
})

const absent = { ...without(not_found), "there is another": not_found } as const

/** A backup is in progress. */
const busy = {
  "a backup without a policy is under way, and there is none": conflict,
  "a backup without a policy is under way": conflict,
  "a backup of it is under way": conflict,
} as const

const known = (...events: ReadonlyArray<PolicyEvent>) =>
  events.reduce(Policy.evolve, Policy.initialState).context

describe("a share's policy", () => {
  everyState(Policy, states, {
    DefinePolicy: [
      { command: DefinePolicy.make(policy), in: without([defined]), otherwise: conflict },
    ],
    UpdatePolicy: [
      {
        with: "of one field",
        command: UpdatePolicy.make({ policy_id, schedule: "0 3 * * *" }),
        in: absent,
        otherwise: [updated({ schedule: "0 3 * * *" })],
      },
      {
        with: "of two fields, the others unchanged",
        command: UpdatePolicy.make({
          policy_id,
          name: "Weekly",
          retention: { keep_weekly: 1 },
          timezone: "UTC",
          exclude_patterns: [...policy.exclude_patterns],
          include_patterns: [],
        }),
        in: absent,
        otherwise: [updated({ name: "Weekly", retention: { keep_weekly: 1 } })],
      },
      {
        with: "of whether it is enabled",
        command: UpdatePolicy.make({ policy_id, enabled: false }),
        in: { ...absent, "it is not enabled": [] },
        otherwise: [updated({ enabled: false })],
      },
      { with: "of nothing", command: UpdatePolicy.make({ policy_id }), in: absent, otherwise: [] },
    ],
    DeletePolicy: [
      {
        command: DeletePolicy.make({ policy_id, project_id }),
        in: { ...absent, "a backup of it is under way": "svc.policy_has_inflight_backup" },
        otherwise: [deleted],
      },
    ],
    StartShareBackup: [
      {
        with: "without a policy",
        command: StartShareBackup.make({ backup_id, policy_id: null, tick: null }),
        in: busy,
        otherwise: [on_demand],
      },
      {
        with: "of the policy",
        command: StartShareBackup.make({ backup_id, policy_id, tick: null }),
        in: { ...busy, ...absent },
        otherwise: [of_policy],
      },
      {
        with: "at a tick",
        command: StartShareBackup.make({ backup_id, policy_id, tick: at }),
        in: {
          ...busy,
          ...absent,
          "it is not enabled": conflict,
          "a tick was taken": conflict,
          "a tick was skipped": conflict,
        },
        otherwise: [started(policy_id, at)],
      },
      {
        with: "at an earlier tick",
        command: StartShareBackup.make({ backup_id, policy_id, tick: a_moment_before }),
        in: {
          ...busy,
          ...absent,
          "it is not enabled": conflict,
          "a tick was taken": conflict,
          "a tick was skipped": conflict,
        },
        otherwise: [started(policy_id, a_moment_before)],
      },
      {
        with: "at a later tick",
        command: StartShareBackup.make({ backup_id, policy_id, tick: later }),
        in: { ...busy, ...absent, "it is not enabled": conflict },
        otherwise: [started(policy_id, later)],
      },
    ],
    FinishShareBackup: [
      {
        command: FinishShareBackup.make({ backup_id }),
        in: {
          "a backup without a policy is under way, and there is none": [finished],
          "a backup without a policy is under way": [finished],
          "a backup of it is under way": [finished],
        },
        otherwise: [],
      },
      {
        with: "of another",
        command: FinishShareBackup.make({ backup_id: other_backup_id }),
        otherwise: [],
      },
    ],
    SkipTick: [
      {
        command: SkipTick.make({ policy_id, tick: at, reason: "repository_locked" }),
        in: { ...absent, "a tick was taken": conflict, "a tick was skipped": conflict },
        otherwise: [skipped(at)],
      },
      {
        with: "later",
        command: SkipTick.make({ policy_id, tick: later, reason: "repository_locked" }),
        in: absent,
        otherwise: [skipped(later)],
      },
    ],
  })
})

describe("the context of a share's policy", () => {
  const idle = { policy, backup: null, last_tick: null }

  it("is empty before the first policy, and after the last", () => {
    assert.deepEqual(known(), { ...idle, policy: null })
    assert.deepEqual(known(defined, skipped(at), deleted), { ...idle, policy: null })
  })
  it("has the fields of its creation and later updates", () =>
    assert.deepEqual(known(defined, updated({ name: "Weekly", enabled: false })), {
      ...idle,
      policy: { ...policy, name: "Weekly", enabled: false },
    }))
  it("has the backup in progress and its policy", () => {
    assert.deepEqual(known(defined, on_demand), { ...idle, backup: { backup_id, policy_id: null } })
    assert.deepEqual(known(defined, of_policy), { ...idle, backup: { backup_id, policy_id } })
    assert.deepEqual(known(defined, of_policy, finished), idle)
  })
  it("has the last tick, which a backup on demand does not change", () => {
    const taken = [defined, started(policy_id, at), finished] as const
    assert.equal(known(...taken, of_policy).last_tick, at)
    assert.equal(known(...taken, skipped(later)).last_tick, later)
  })
  it("has no tick of an earlier policy", () =>
    given(Policy)(...states["a tick was skipped"], deleted, defined)
      .when(StartShareBackup.make({ backup_id, policy_id, tick: a_moment_before }))
      .thenEvents(started(policy_id, a_moment_before)))
  it("has no policy after its deletion during a backup of another policy", () => {
    given(Policy)(defined, on_demand)
      .when(DeletePolicy.make({ policy_id, project_id }))
      .thenEvents(deleted)
    assert.deepEqual(known(defined, on_demand, deleted), {
      ...idle,
      policy: null,
      backup: { backup_id, policy_id: null },
    })
  })
  it("ignores impossible events", () => {
    const impossible: ReadonlyArray<ReadonlyArray<PolicyEvent>> = [
      [defined, defined],
      [updated({})],
      [defined, { ...updated({}), policy_id: other_policy_id }],
      [defined, { ...deleted, policy_id: other_policy_id }],
      [defined, of_policy, deleted],
      [defined, of_policy, ShareBackupFinished.make({ backup_id: other_backup_id })],
      [defined, skipped(at), skipped(at)],
      [defined, { ...skipped(at), policy_id: other_policy_id }],
      [on_demand, on_demand],
    ]
    for (const history of impossible) {
      assert.throws(() => known(...history), /cannot happen/, JSON.stringify(history.at(-1)))
    }
  })
  it("names the obstacle", () => {
    const detail = (history: ReadonlyArray<PolicyEvent>, command: typeof Policy.command.Type) =>
      JSON.stringify(Policy.decide(history.reduce(Policy.evolve, Policy.initialState), command))
    const start = StartShareBackup.make({ backup_id: other_backup_id, policy_id, tick: at })
    assert.include(
      detail([defined], DefinePolicy.make(policy)),
      `already has a policy: ${policy_id}.`,
    )
    assert.include(detail([defined, of_policy], start), `Backup ${backup_id} of the share`)
    assert.include(detail([defined, skipped(at)], start), `ticks up to ${at} are already handled`)
    assert.include(detail(states["it is not enabled"], start), "not enabled")
    const end = DeletePolicy.make({ policy_id, project_id })
    assert.include(detail([defined, of_policy], end), `Backup ${backup_id} of the policy`)
  })

  it("fits in a snapshot with every field at its longest", () => {
    // One pattern that has exactly the maximum number of JSON bytes.
    const patterns = ["x".repeat(4096 - '[""]'.length)]
    const keep = { keep_last: 1e6, keep_daily: 1e6, keep_weekly: 1e6, keep_monthly: 1e6 }
    const saved = assertStorable(Policy, [
      PolicyDefined.make({
        id: policy_id,
        project_id: longest_project_id,
        target_id,
        target_template_id: null,
        name: longestName(),
        schedule: longest(256),
        timezone: longest(64),
        include_patterns: patterns,
        exclude_patterns: patterns,
        retention: keep,
        enabled: true,
        max_retries: 10,
      }),
      started(policy_id, at),
    ])
    assert.isAbove(JSON.stringify(saved).length, 10_000)
  })
})

describe("a policy's patterns", () => {
  // Results of parsing with restic 0.19, except for `..`.
  it("are limited to those that the engine can parse", () => {
    const read = [
      "*.tmp",
      "**/x",
      "/",
      "a//b",
      "a]b",
      "[a-z]*",
      "[a-z9]",
      "[^a]",
      "[^^]",
      "[[]",
      "[z-a]",
      "[\\]]",
      "[\\-]",
      "\\[a",
      "a\\]",
      "[^\\]]x",
      "x[\u00e9-\u00fc]y",
      "!x",
      "{a,b}",
    ]
    const up = ["..", "../docs", "/a/.."]
    const unread = [
      ...up,
      "[a",
      "[]",
      "[]a]",
      "[^]",
      "[^-a]",
      "[a-]",
      "[-a]",
      "a\\",
      "/a/[b/c]",
      "a/[]/b",
    ]
    assert.deepEqual(
      [...read, ...unread].filter((pattern) => isReadable(pattern)),
      read,
    )
  })
})

describe("a policy's fields", () => {
  const is = Schema.is(DefinePolicy)
  const all = { type: "DefinePolicy", ...policy }
  const right: ReadonlyArray<object> = [
    { retention: { keep_monthly: 1 } },
    { retention: { keep_last: 0, keep_daily: 1_000_000 } },
    { max_retries: 0 },
    { max_retries: 10 },
    { include_patterns: Array.from({ length: 256 }, () => "*") },
    { exclude_patterns: ["x".repeat(4092)] },
    { schedule: "x".repeat(256) },
    { name: "x".repeat(255) },
  ]
  const wrong: ReadonlyArray<object> = [
    { retention: {} },
    { retention: { keep_last: 0, keep_daily: 0, keep_weekly: 0, keep_monthly: 0 } },
    { retention: { keep_last: -1, keep_daily: 1 } },
    { retention: { keep_last: 1.5 } },
    { retention: { keep_last: 1_000_001 } },
    { retention: { keep_last: "1" } },
    { max_retries: 11 },
    { max_retries: -1 },
    { max_retries: 0.5 },
    { include_patterns: Array.from({ length: 257 }, () => "*") },
    { include_patterns: [""] },
    { include_patterns: ["a\nb"] },
    { exclude_patterns: ["x".repeat(4093)] },
    { exclude_patterns: ["\u20ac".repeat(1365)] },
    { schedule: "" },
    { schedule: "x".repeat(257) },
    { timezone: "" },
    { timezone: "x".repeat(65) },
    { name: "x".repeat(256) },
    { enabled: "true" },
    { id: "1" },
  ]
  it("are validated", () => {
    assert.isTrue(is(all))
    for (const fields of right) assert.isTrue(is({ ...all, ...fields }), JSON.stringify(fields))
    for (const fields of wrong) assert.isFalse(is({ ...all, ...fields }), JSON.stringify(fields))
  })
  it("have a known reason for a skipped tick", () => {
    const skip = { type: "SkipTick", policy_id, tick: at }
    for (const reason of SkipReason.literals)
      assert.isTrue(Schema.is(SkipTick)({ ...skip, reason }))
    assert.isFalse(Schema.is(SkipTick)({ ...skip, reason: "rain" }))
  })
})
