/** Rows that derive from several aggregates: deletions, schedules, usage and coverage. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { findBackup } from "#projections/share-protection/backup.ts"
import { findJob, listJobs } from "#projections/share-protection/job.ts"
import { findPolicy, listSchedules } from "#projections/share-protection/policy.ts"
import { coverageOf, usageOf } from "#projections/share-protection/usage.ts"
import { DomainId, PolicyId, ProjectId, TargetId } from "#schemas/share-protection/id.ts"
import { about } from "../../world/share-protection/job-samples.ts"
import { emptyModel } from "../../world/share-protection/read-model.ts"
import {
  at,
  backup,
  backup_id,
  domain_id,
  jobId,
  other_backup_id,
  other_project_id,
  policy,
  policy_id,
  project_id,
  share_id,
  snapshot,
  target_id,
  template,
  template_id,
  usage_stats,
  uuid,
} from "../../world/share-protection/samples.ts"
import { created } from "../../world/share-protection/target-samples.ts"

const queued = { type: "JobQueued", ...about } as const
const other_target_id = TargetId.make(uuid(99))

describe("a target that is deleted", () => {
  it.effect("loses the rows of its own jobs only", () =>
    Effect.gen(function* () {
      const { db, tell } = yield* emptyModel
      yield* tell(`target.${target_id}`, 0, created)
      yield* tell(`target.${other_target_id}`, 0, created)
      yield* tell(`job.${jobId(1)}`, 1, queued)
      yield* tell(`job.${jobId(2)}`, 1, queued)
      yield* tell(`job.${jobId(3)}`, 1, { ...queued, target_id: other_target_id })
      yield* tell(`target.${target_id}`, 2, { type: "TargetDeleted" })
      const left = yield* listJobs(db, {}, { limit: 10 })
      assert.deepEqual(
        left.rows.map(({ id }) => id),
        [jobId(3)],
      )
    }).pipe(Effect.scoped),
  )

  it.effect("has no row of a job that ends, or is queued, after its deletion", () =>
    Effect.gen(function* () {
      const { db, tell } = yield* emptyModel
      yield* tell(`target.${target_id}`, 0, created)
      yield* tell(`job.${jobId(1)}`, 1, queued)
      yield* tell(`target.${target_id}`, 2, { type: "TargetDeleted" })
      yield* tell(`job.${jobId(1)}`, 2, { type: "JobCancelled" })
      yield* tell(`job.${jobId(2)}`, 3, queued)
      assert.isUndefined(yield* findJob(db, jobId(1)))
      assert.isUndefined(yield* findJob(db, jobId(2)))
    }).pipe(Effect.scoped),
  )
})

describe("a policy that is deleted", () => {
  it.effect("leaves its backups behind without a policy", () =>
    Effect.gen(function* () {
      const { db, tell } = yield* emptyModel
      const other_policy_id = PolicyId.make(uuid(77))
      yield* tell(`backup.${backup_id}`, 0, { type: "BackupRequested", ...backup })
      yield* tell(`backup.${other_backup_id}`, 0, {
        type: "BackupRequested",
        ...backup,
        policy_id: other_policy_id,
      })
      yield* tell(`policy.${share_id}`, 1, { type: "PolicyDeleted", policy_id, project_id })
      assert.isNull((yield* findBackup(db, backup_id))?.policy_id)
      assert.equal((yield* findBackup(db, other_backup_id))?.policy_id, other_policy_id)
    }).pipe(Effect.scoped),
  )
})

describe("a policy and a backup", () => {
  it.effect("are of the domain that owns their target, or their template", () =>
    Effect.gen(function* () {
      const { db, tell } = yield* emptyModel
      yield* tell(`target.${target_id}`, 0, { ...created, domain_id })
      const south = DomainId.make("south")
      const made = { type: "TargetTemplateCreated", ...template, domain_id: south }
      yield* tell(`target-template.${template_id}`, 0, made)
      yield* tell(`policy.${uuid(1)}`, 1, { type: "PolicyDefined", ...policy })
      const of_template = { target_id: null, target_template_id: template_id }
      const other_policy_id = PolicyId.make(uuid(77))
      yield* tell(`policy.${uuid(2)}`, 1, {
        type: "PolicyDefined",
        ...policy,
        ...of_template,
        id: other_policy_id,
      })
      yield* tell(`backup.${backup_id}`, 1, { type: "BackupRequested", ...backup })
      assert.equal((yield* findPolicy(db, policy_id))?.domain_id, domain_id)
      assert.equal((yield* findPolicy(db, other_policy_id))?.domain_id, south)
      assert.equal((yield* findBackup(db, backup_id))?.domain_id, domain_id)
    }).pipe(Effect.scoped),
  )
})

describe("the schedules", () => {
  it.effect("are those of the enabled policies, without duplicates", () =>
    Effect.gen(function* () {
      const { db, tell } = yield* emptyModel
      const define = (n: number, changes: object) =>
        tell(`policy.${uuid(n)}`, 0, {
          type: "PolicyDefined",
          ...policy,
          id: uuid(100 + n),
          ...changes,
        })
      yield* define(1, {})
      yield* define(2, {})
      yield* define(3, { timezone: "Europe/Berlin" })
      yield* define(4, { schedule: "0 4 * * *", enabled: false })
      const schedules = yield* listSchedules(db)
      assert.deepEqual(schedules.map(({ timezone }) => timezone).sort(), ["Europe/Berlin", "UTC"])
    }).pipe(Effect.scoped),
  )
})

/** Two projects in two domains, and a bucket that they share. */
const used = Effect.gen(function* () {
  const model = yield* emptyModel
  const { tell } = model
  const measured = (stored_bytes: number) => ({
    type: "TargetUsageMeasured",
    usage_stats: { ...usage_stats, stored_bytes },
  })
  yield* tell(`target.${uuid(1)}`, 0, { ...created, domain_id }, measured(1000), measured(100))
  const elsewhere = { project_id: other_project_id, domain_id: DomainId.make("south") }
  yield* tell(`target.${uuid(2)}`, 0, { ...created, ...elsewhere }, measured(20))
  yield* tell(`target.${uuid(3)}`, 0, { ...created, project_id: null }, measured(3))
  yield* tell(`target.${uuid(4)}`, 0, { ...created })

  const define = (n: number, changes: object) =>
    tell(`policy.${uuid(10 + n)}`, 1, {
      type: "PolicyDefined",
      ...policy,
      id: uuid(100 + n),
      target_id: uuid(1),
      ...changes,
    })
  const back = (n: number, share: number, changes: object, taken_at = at) =>
    tell(
      `backup.${uuid(1000 + n)}`,
      2,
      {
        type: "BackupRequested",
        ...backup,
        share_id: uuid(10 + share),
        target_id: uuid(1),
        ...changes,
      },
      { type: "BackupStarted" },
      { type: "BackupCompleted", ...snapshot, bytes: n, taken_at },
    )
  yield* define(1, {})
  yield* define(2, { enabled: false })
  yield* define(3, { project_id: other_project_id, target_id: uuid(2) })
  yield* back(7, 1, {})
  // This backup was made later, although it was recorded earlier.
  yield* back(5, 1, {}, "2026-11-20T12:30:00.000Z")
  yield* back(11, 2, {})
  yield* back(13, 4, { policy_id: null, project_id: other_project_id, target_id: uuid(2) })
  return model
})

const of = (rows: ReadonlyArray<object>) => rows.map((row) => Object.values(row))

describe("usage", () => {
  it.effect("counts protected shares, backups, their newest bytes and what is stored", () =>
    Effect.gen(function* () {
      const { db, reader } = yield* used
      const all = [
        [null, 0, 0, 0, 3],
        [project_id, 1, 3, 5, 100],
        [other_project_id, 1, 1, 0, 20],
      ]
      assert.deepEqual(of(yield* usageOf(db, {})), all)
      assert.deepEqual(of(yield* usageOf(reader, {})), all)
      assert.deepEqual(of(yield* usageOf(db, { project_id })), all.slice(1, 2))
      assert.deepEqual(of(yield* usageOf(db, { project_id: ProjectId.make("nobody") })), [])
    }).pipe(Effect.scoped),
  )

  it.effect("is limited to a domain's targets if a domain is named", () =>
    Effect.gen(function* () {
      const { db } = yield* used
      assert.deepEqual(of(yield* usageOf(db, { domain_id })), [[project_id, 1, 3, 5, 100]])
      const south = { domain_id: DomainId.make("south") }
      assert.deepEqual(of(yield* usageOf(db, south)), [[other_project_id, 1, 1, 0, 20]])
      assert.deepEqual(of(yield* usageOf(db, { ...south, project_id })), [])
    }).pipe(Effect.scoped),
  )

  it.effect("excludes expired, deleted and lost backups", () =>
    Effect.gen(function* () {
      const { db, tell } = yield* used
      yield* tell(`backup.${uuid(1005)}`, 3, { type: "BackupExpired" })
      assert.deepEqual(of(yield* usageOf(db, { project_id })), [[project_id, 1, 2, 7, 100]])
      yield* tell(`backup.${uuid(1007)}`, 4, { type: "BackupLost", reason: "" })
      assert.deepEqual(of(yield* usageOf(db, { project_id })), [[project_id, 1, 1, 0, 100]])
      yield* tell(`backup.${uuid(1011)}`, 5, { type: "BackupDeleted", at, expired: false })
      yield* tell(`target.${uuid(1)}`, 6, { type: "TargetDeleted" })
      assert.deepEqual(of(yield* usageOf(db, { project_id })), [[project_id, 1, 0, 0, 0]])
    }).pipe(Effect.scoped),
  )
})

describe("coverage", () => {
  it.effect("lists each share that has a policy or a backup", () =>
    Effect.gen(function* () {
      const { db, reader } = yield* used
      const rows = [
        [uuid(11), project_id, uuid(101), uuid(1), 2, "2026-11-20T12:30:00.000Z", true, null, null],
        [
          uuid(12),
          project_id,
          uuid(102),
          uuid(1),
          1,
          "2026-11-20T12:00:00.000Z",
          false,
          null,
          null,
        ],
        [uuid(13), other_project_id, uuid(103), uuid(2), 0, null, true, null, null],
        [
          uuid(14),
          other_project_id,
          null,
          uuid(2),
          1,
          "2026-11-20T12:00:00.000Z",
          false,
          null,
          null,
        ],
      ]
      assert.deepEqual(of(yield* coverageOf(db)), rows)
      assert.deepEqual(of(yield* coverageOf(reader)), rows)
    }).pipe(Effect.scoped),
  )

  it.effect("names the newest backup's target if the policy names a template", () =>
    Effect.gen(function* () {
      const { db, tell } = yield* used
      yield* tell(`policy.${uuid(14)}`, 3, {
        type: "PolicyDefined",
        ...policy,
        id: uuid(104),
        project_id: other_project_id,
        target_id: null,
        target_template_id: template_id,
      })
      const row = (yield* coverageOf(db)).find(({ share_id }) => share_id === uuid(14))
      assert.equal(row?.target_id, uuid(2))
      assert.isTrue(row?.protected)
    }).pipe(Effect.scoped),
  )
})
