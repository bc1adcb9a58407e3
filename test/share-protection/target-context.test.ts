import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import { Target } from "#actors/share-protection/target.ts"
import {
  TargetCreated,
  TargetEnrolled,
  TargetEnrollmentFailed,
  type TargetEvent,
  TargetPreflighted,
  TargetUsageMeasured,
} from "#events/share-protection/target.ts"
import {
  BucketName,
  Capabilities,
  CreateTarget,
  DeleteTarget,
  DeregisterTargetBackups,
  RegisterTargetBackup,
  RepositoryFormat,
  StartFormatUpgrade,
} from "#schemas/share-protection/target.ts"
import { given } from "../world/given.ts"
import {
  at,
  capabilities,
  enrolled,
  job_id,
  later,
  longest,
  longest_domain_id,
  longest_project_id,
  longestName,
  longestRef,
  longestUrl,
  other_job_id,
  secretRef,
  target,
  template_id,
  usage_stats,
} from "../world/share-protection/samples.ts"
import {
  backup_registered,
  completed,
  created,
  deleted,
  deregistered,
  failed,
  measured,
  moved,
  policy_deregistered,
  policy_registered,
  reason,
  renamed,
  states,
  upgrade_failed,
  upgrade_job_id,
  upgrade_started,
  upgraded,
} from "../world/share-protection/target-samples.ts"
import { assertStorable } from "../world/state-table.ts"

const known = (...events: ReadonlyArray<TargetEvent>) =>
  events.reduce(Target.evolve, Target.initialState).context

describe("the context of a target", () => {
  const unenrolled = {
    repository_password_ref: null,
    capabilities: null,
    preflight_at: null,
    usage_stats: null,
    protected_until: null,
    format: null,
    engine_profile: null,
    format_job_id: null,
    reason: null,
    policies: 0,
    backups: 0,
  }
  const here = { ...target, ...unenrolled, ...enrolled, preflight_at: at }

  it("initially has the fields of its creation", () =>
    assert.deepEqual(known(created), { ...target, ...unenrolled }))
  it("has its repository after the enrollment", () =>
    assert.deepEqual(known(...states.available), here))
  it("has the reason of a failed enrollment", () =>
    assert.deepEqual(known(created, failed), { ...target, ...unenrolled, reason }))
  it("has the new job of a restarted enrollment, without a reason", () =>
    assert.deepEqual(known(...states["pending again"]), {
      ...target,
      ...unenrolled,
      job_id: other_job_id,
    }))
  it("follows updates before and after its enrollment", () => {
    assert.deepEqual(known(created, moved), {
      ...target,
      ...unenrolled,
      bucket: "another-bucket",
    })
    assert.deepEqual(known(...states.available, renamed), { ...here, name: "Another" })
    assert.deepEqual(known(created, failed, renamed).name, "Another")
  })
  it("has the job that upgrades its format, and then the new format", () => {
    assert.deepEqual(known(...states.upgrading), { ...here, format_job_id: upgrade_job_id })
    assert.deepEqual(known(...states.upgraded), { ...here, format: 3 })
    assert.deepEqual(known(...states["not upgraded"]), here)
  })
  it("has the time of its last preflight; a failed one removes no capability", () => {
    const other = { ...capabilities, lifecycle: false, checked_at: later }
    const passed = TargetPreflighted.make({ capabilities: other, reason: null, at: later })
    const broken = TargetPreflighted.make({ capabilities: null, reason, at: later })
    assert.deepEqual(known(...states.available, passed), {
      ...here,
      capabilities: other,
      preflight_at: later,
    })
    assert.deepEqual(known(...states.available, broken), { ...here, preflight_at: later })
  })
  it("counts policies and backups, and has their usage", () =>
    assert.deepEqual(
      known(
        ...states.available,
        policy_registered,
        policy_registered,
        policy_deregistered,
        backup_registered,
        backup_registered,
        backup_registered,
        deregistered(2),
        measured,
      ),
      { ...here, policies: 1, backups: 1, usage_stats },
    ))
  it("ignores impossible events", () => {
    const impossible: ReadonlyArray<ReadonlyArray<TargetEvent>> = [
      [created, TargetEnrolled.make({ job_id: other_job_id, ...enrolled })],
      [created, failed, completed],
      [created, TargetEnrollmentFailed.make({ job_id: other_job_id, reason })],
      [...states.available, moved],
      [...states.available, upgraded],
      [...states.available, deregistered(1)],
      [...states.upgrading, { ...upgraded, job_id }],
      [...states.upgrading, { ...upgrade_failed, job_id }],
      [...states.upgrading, deleted],
      [...states.upgrading, backup_registered],
      [created, policy_deregistered],
    ]
    for (const history of impossible) {
      assert.throws(() => known(...history), /cannot happen/, JSON.stringify(history.at(-1)))
    }
  })
  it("names the job that blocks a backup, and the dependents that block its deletion", () => {
    const detail = (history: ReadonlyArray<TargetEvent>, command: typeof Target.command.Type) =>
      JSON.stringify(Target.decide(history.reduce(Target.evolve, Target.initialState), command))
    assert.include(detail(states.upgrading, RegisterTargetBackup.make({})), upgrade_job_id)
    const end = detail(states["holding two backups"], DeleteTarget.make({}))
    assert.include(end, "0 policies and 2 backups")
  })
  it("has the job of the present enrollment", () =>
    given(Target)(
      ...states["pending again"],
      TargetEnrolled.make({ job_id: other_job_id, ...enrolled }),
    )
      .when(StartFormatUpgrade.make({ job_id: upgrade_job_id }))
      .thenEvents(upgrade_started))

  it("fits in a snapshot with every field at its longest", () => {
    const name = longestName()
    const ref = longestRef()
    const bytes = 2 ** 53 - 1
    const usage = { stored_bytes: bytes, noncurrent_bytes: bytes, objects: bytes, measured_at: at }
    const everything = {
      name,
      region: name,
      registered_by: name,
      endpoint: longestUrl(),
      bucket: "b".repeat(63),
      trust_id: "t".repeat(64),
      ca_cert_ref: ref,
      addressing_mode: "virtual",
      vault_secret_map: { access_key: ref, secret_key: ref },
      project_id: longest_project_id,
      domain_id: longest_domain_id,
      template_id,
      job_id,
    } as const
    const repository = { repository_password_ref: ref, engine_profile: name, format: 99 }
    assertStorable(Target, [
      TargetCreated.make(everything),
      TargetEnrolled.make({ job_id, ...repository, capabilities }),
      TargetUsageMeasured.make({ usage_stats: usage }),
      { ...upgrade_started, from_format: 99 },
    ])
    // Only a target without a repository has a reason.
    const failure = TargetEnrollmentFailed.make({ job_id, reason: longest(1024) })
    const saved = assertStorable(Target, [TargetCreated.make(everything), failure])
    assert.isAbove(JSON.stringify(saved).length, 10_000)
  })
})

describe("a bucket's name", () => {
  const is = Schema.is(BucketName)
  const right = ["abc", "a-b", "a.b", "0bucket9", "x".repeat(63), "10.0.0", "1.2.3.4a"]
  const wrong = [
    "",
    "ab",
    "x".repeat(64),
    "Upper",
    "under_score",
    "-abc",
    "abc-",
    ".abc",
    "abc.",
    "a..b",
    "10.0.0.1",
    "a b",
    "a/b",
    "bücher",
  ]
  for (const name of right) it(`may be ${name}`, () => assert.isTrue(is(name)))
  for (const name of wrong) it(`may not be ${name}`, () => assert.isFalse(is(name)))
})

describe("a target's fields", () => {
  const is = Schema.is(CreateTarget)
  const all = { type: "CreateTarget", ...target }
  const right = [
    { trust_id: null, vault_secret_map: null },
    { project_id: null, domain_id: "domain-1", template_id },
    { addressing_mode: "virtual" },
    { project_id: "7a1fd1e3c0d94a4f8d1f2f0f5d1e9b77" },
  ]
  const wrong = [
    { name: "" },
    { endpoint: "ftp://s3.example.org" },
    { bucket: "B" },
    { trust_id: "" },
    { trust_id: "t".repeat(65) },
    { trust_id: "../trust" },
    { vault_secret_map: { access_key: secretRef(1) } },
    { vault_secret_map: { access_key: secretRef(1), secret_key: "secret" } },
    { addressing_mode: "host" },
    { project_id: "a.b" },
    { project_id: "p".repeat(65) },
    { job_id: "1" },
    { template_id: "template-1" },
  ]
  it("are validated", () => {
    assert.isTrue(is(all))
    for (const fields of right) assert.isTrue(is({ ...all, ...fields }), JSON.stringify(fields))
    for (const fields of wrong) assert.isFalse(is({ ...all, ...fields }), JSON.stringify(fields))
  })
  it("of a repository are validated", () => {
    for (const format of [1, 99]) assert.isTrue(Schema.is(RepositoryFormat)(format))
    for (const format of [0, 100, 1.5]) assert.isFalse(Schema.is(RepositoryFormat)(format))
    assert.isTrue(Schema.is(Capabilities)(capabilities))
    for (const checked_at of ["2026-11-20T12:00:00Z", "2026-11-20T12:00:00.000+01:00", 0]) {
      assert.isFalse(Schema.is(Capabilities)({ ...capabilities, checked_at }))
    }
    const no_one_deregisters = { type: "DeregisterTargetBackups", count: 0 }
    assert.isFalse(Schema.is(DeregisterTargetBackups)(no_one_deregisters))
  })
})
