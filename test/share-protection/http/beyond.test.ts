/** Endpoints that are not in the document, for tenants and operators, in either shape. */
import { assert, describe } from "@effect/vitest"
import { Effect, Struct } from "effect"
import { address } from "#actors/commands.ts"
import { Backup } from "#actors/share-protection/backup.ts"
import { Job } from "#actors/share-protection/job.ts"
import { completeJob, failJob } from "#actors/share-protection/jobs/transitions.ts"
import { expireBackups, testBackup } from "#actors/share-protection/requests.ts"
import { Target } from "#actors/share-protection/target.ts"
import { FailRestoreTest } from "#schemas/share-protection/backup.ts"
import { BackupId, JobId, TargetId } from "#schemas/share-protection/id.ts"
import { AdvanceJob, job_steps } from "#schemas/share-protection/job.ts"
import { RecordTargetLocks } from "#schemas/share-protection/target.ts"
import {
  admin,
  backedUp,
  bucketOf,
  made,
  policyOf,
  template,
  tenant_b,
  unknown_id,
} from "../../world/share-protection/http/given.ts"
import { project_a, share_a } from "../../world/share-protection/http/ports.ts"
import { type Client, isRefused, served } from "../../world/share-protection/http/served.ts"
import {
  begin,
  engine_failure,
  fail,
  register,
  run,
  tell,
} from "../../world/share-protection/http/transitions.ts"
import { plan, snapshot, uuid } from "../../world/share-protection/samples.ts"

const far = "2099-01-01T00:00:00.000Z"

const expire = (target_id: string, backup_id: string) => {
  const { engine_snapshot_id } = snapshot
  const backups = [{ backup_id: BackupId.make(backup_id), engine_snapshot_id }]
  const going = { project_id: project_a, target_id: TargetId.make(target_id), backups }
  return tell(...expireBackups({ ...going, job_id: JobId.make(uuid(77)) }))
}

/** Shape B: a restorable backup in a bucket that derives from a template. */
const backedUpInBucket = Effect.fnUntraced(function* (ask: Client) {
  const { id } = yield* made(ask, "/v1/target-templates", template, "owner")
  const target = yield* made(ask, "/v1/targets", bucketOf(String(id)), "owner")
  const policy = { ...Struct.omit(policyOf(""), ["target_id"]), target_template_id: id }
  const { id: policy_id } = yield* made(ask, "/v1/policies", policy)
  yield* register()
  yield* run(target.job_id, 1)
  const backup = yield* made(ask, "/v1/backups", { share_id: share_a, policy_id })
  yield* run(backup.job_id, 2)
  return { backup_id: String(backup.id), target_id: String(target.id), policy_id }
})

/** Runs a job through all its steps and completes it with this plan. */
const planned = Effect.fnUntraced(function* (job_id: string, fence: number) {
  const { facts, hold } = yield* begin(job_id, fence)
  for (const to of job_steps.slice(1)) {
    yield* tell(address(Job, facts.job_id, AdvanceJob.make({ ...hold, to })))
  }
  const found = { new_share_id: null, files: 0, bytes: 0, plan }
  yield* tell(...completeJob(facts, hold, { job_type: "restore", made: found }))
})

describe("POST /v1/restores with dry_run", () => {
  served("202: a job makes the plan, which the restore shows; force is not required", (ask) =>
    Effect.gen(function* () {
      const { backup_id } = yield* backedUp(ask)
      const fields = { backup_id, mode: "in_place", dry_run: true }
      const { restore, job } = yield* made(ask, "/v1/restores", fields)
      assert.deepInclude(restore as object, {
        ...fields,
        force: false,
        plan_hash: null,
        plan: null,
      })
      yield* planned(job.id, 3)
      const { body } = yield* ask("GET", `/v1/restores/${restore.id}`)
      assert.deepInclude(body, { status: "available", plan, files: 0, new_share_id: null })
    }),
  )
  served("202: with force and the hash of a plan", (ask) =>
    Effect.gen(function* () {
      const { backup_id } = yield* backedUp(ask)
      const body = { backup_id, mode: "in_place", force: true, plan_hash: plan.hash }
      const { restore } = yield* made(ask, "/v1/restores", body)
      assert.deepInclude(restore as object, { ...body, dry_run: false })
    }),
  )
  const in_place = { backup_id: unknown_id, mode: "in_place" }
  for (const [how, body, detail] of [
    ["a new share", { backup_id: unknown_id, dry_run: true }, "body.mode"],
    ["a plan of a new share", { backup_id: unknown_id, plan_hash: plan.hash }, "body.mode"],
    ["a hash that is none", { ...in_place, force: true, plan_hash: "abc" }, "body.plan_hash"],
    ["both", { ...in_place, dry_run: true, plan_hash: plan.hash }, "body.plan_hash"],
    ["a dry run as a text", { ...in_place, dry_run: "yes" }, "body.dry_run"],
  ] as const) {
    served(`400: ${how}`, (ask) =>
      Effect.gen(function* () {
        isRefused(yield* ask("POST", "/v1/restores", body), 400, "svc.validation_error", detail)
      }),
    )
  }
  served("409: with a plan but without force", (ask) =>
    Effect.gen(function* () {
      const answer = yield* ask("POST", "/v1/restores", { ...in_place, plan_hash: plan.hash })
      isRefused(answer, 409, "svc.force_required")
    }),
  )
})

describe("POST /v1/backups/{id}/undelete", () => {
  served("202: a job; afterwards the backup is available and kept", (ask) =>
    Effect.gen(function* () {
      const { target_id, backup_id } = yield* backedUp(ask, { snapshot: { protected_until: far } })
      const path = `/v1/backups/${backup_id}`
      assert.deepInclude((yield* ask("GET", path)).body, { kept: false, recoverable_until: null })
      yield* expire(target_id, backup_id)
      const expired = (yield* ask("GET", path)).body
      assert.deepInclude(expired, { status: "expired", recoverable_until: far })
      yield* run(uuid(77), 3)
      const { status, headers, body } = yield* ask("POST", `${path}/undelete`)
      assert.equal(status, 202)
      assert.deepInclude(body.backup, { id: backup_id, status: "expired" })
      assert.deepInclude(body.job, { job_type: "undelete", resource_id: backup_id, backup_id })
      assert.equal(headers.get("location"), `/v1/jobs/${body.job.id}`)
      yield* run(body.job.id, 4)
      const back = (yield* ask("GET", path)).body
      assert.deepInclude(back, { status: "available", kept: true, recoverable_until: null })
      assert.isNull(back.expired_at)
      assert.deepInclude((yield* ask("GET", "/v1/usage")).body, { backup_count: 1 })
    }),
  )
  served("202: the same job for a repeated request with the same key", (ask) =>
    Effect.gen(function* () {
      const { target_id, backup_id } = yield* backedUp(ask)
      yield* expire(target_id, backup_id)
      const headers = { "idempotency-key": "a-key" }
      const undelete = ask("POST", `/v1/backups/${backup_id}/undelete`, undefined, { headers })
      const [one, two] = yield* Effect.all([undelete, undelete], { concurrency: 2 })
      assert.deepEqual([one.status, two.status], [202, 202], `${one.text} ${two.text}`)
      assert.equal(one.body.job.id, two.body.job.id)
    }),
  )
  served(
    "its failure leaves the backup expired, outside the quota, and can be retried",
    (ask) =>
      Effect.gen(function* () {
        const { target_id, backup_id } = yield* backedUp(ask)
        yield* expire(target_id, backup_id)
        yield* run(uuid(77), 3)
        const path = `/v1/backups/${backup_id}`
        const { body } = yield* ask("POST", `${path}/undelete`)
        yield* fail(body.job.id, 4)
        assert.deepInclude((yield* ask("GET", path)).body, { status: "expired", kept: false })
        const again = yield* ask("POST", `${path}/undelete`)
        assert.equal(again.status, 202, again.text)
        yield* fail(again.body.job.id, 5)
        const retry = yield* ask("POST", `/v1/admin/jobs/${body.job.id}/retry`, undefined, admin)
        assert.equal(retry.status, 202)
        yield* run(body.job.id, 6)
        assert.equal((yield* ask("GET", path)).body.status, "available")
      }),
    { settings: { quota: { backups: 1 } } },
  )
  served("409: available, or already being undeleted", (ask) =>
    Effect.gen(function* () {
      const { target_id, backup_id } = yield* backedUp(ask)
      const undelete = ask("POST", `/v1/backups/${backup_id}/undelete`)
      isRefused(yield* undelete, 409, "svc.conflict")
      yield* expire(target_id, backup_id)
      assert.equal((yield* undelete).status, 202)
      isRefused(yield* undelete, 409, "svc.conflict")
      isRefused(yield* ask("DELETE", `/v1/backups/${backup_id}`), 409, "svc.conflict")
    }),
  )
  served("404: another project's, or none", (ask) =>
    Effect.gen(function* () {
      const { backup_id } = yield* backedUp(ask)
      const path = `/v1/backups/${backup_id}/undelete`
      isRefused(yield* ask("POST", path, undefined, tenant_b), 404, "svc.not_found")
      const none = yield* ask("POST", `/v1/backups/${unknown_id}/undelete`)
      isRefused(none, 404, "svc.not_found")
    }),
  )
  served(
    "403: the project has its limit of backups again",
    (ask) =>
      Effect.gen(function* () {
        const { target_id, backup_id } = yield* backedUp(ask)
        yield* expire(target_id, backup_id)
        yield* made(ask, "/v1/backups", { share_id: share_a, target_id })
        const answer = yield* ask("POST", `/v1/backups/${backup_id}/undelete`)
        isRefused(answer, 403, "svc.quota_exceeded")
        assert.equal((yield* ask("GET", `/v1/backups/${backup_id}`)).body.status, "expired")
      }),
    { settings: { quota: { backups: 1 } } },
  )
  served(
    "202 in Shape B: the bare backup, with its job by its place",
    (ask) =>
      Effect.gen(function* () {
        const { backup_id, target_id } = yield* backedUpInBucket(ask)
        yield* expire(target_id, backup_id)
        const { status, body, headers } = yield* ask("POST", `/v1/backups/${backup_id}/undelete`)
        assert.equal(status, 202)
        assert.include(body, { id: backup_id, status: "expired", target_bucket_id: target_id })
        const place = headers.get("location") ?? ""
        assert.equal((yield* ask("GET", place)).body.job_type, "undelete")
      }),
    { shape: "B" },
  )
})

describe("protected_until", () => {
  served("includes locks extended by maintenance, which DELETE respects", (ask) =>
    Effect.gen(function* () {
      const { target_id, backup_id } = yield* backedUp(ask)
      const path = `/v1/backups/${backup_id}`
      assert.isNull((yield* ask("GET", path)).body.protected_until)
      const extend = (protected_until: string) =>
        tell(address(Target, target_id, RecordTargetLocks.make({ protected_until })))
      yield* extend(far)
      yield* extend("2030-01-01T00:00:00.000Z")
      assert.equal((yield* ask("GET", path)).body.protected_until, far)
      isRefused(yield* ask("DELETE", path), 409, "svc.conflict", `protected_until ${far}`)
      yield* expire(target_id, backup_id)
      assert.equal((yield* ask("DELETE", path)).status, 204)
    }),
  )
})

const preview = (ask: Client, policy_id: unknown, body: unknown, token = "tenant") =>
  ask("POST", `/v1/policies/${policy_id}/retention-preview`, body, { token })

describe("POST /v1/policies/{id}/retention-preview", () => {
  served("200: kept backups with their rules, and expired ones, without any change", (ask) =>
    Effect.gen(function* () {
      const days = [18, 19, 20]
      const taken = (day: number) => `2026-11-${day}T12:00:00.000Z`
      const first = yield* backedUp(ask, { policy: true, snapshot: { taken_at: taken(18) } })
      const { target_id, policy_id } = first
      const ids = [first.backup_id]
      for (const [n, day] of [19, 20].entries()) {
        const { backup, job } = yield* made(ask, "/v1/backups", { share_id: share_a, policy_id })
        yield* run(job.id, 3 + n, { taken_at: taken(day) })
        ids.push(String(backup.id))
      }
      const { status, body } = yield* preview(ask, policy_id, { retention: { keep_last: 1 } })
      assert.equal(status, 200)
      const { bytes, stored_bytes } = snapshot
      assert.deepEqual(body, {
        keep: [{ backup_id: ids[2], taken_at: taken(20), reasons: ["keep_last"] }],
        expire: [1, 0].map((n) => ({
          backup_id: ids[n],
          taken_at: taken(days[n] ?? 0),
          bytes,
          stored_bytes,
        })),
        expire_bytes: 2 * bytes,
        expire_stored_bytes: 2 * stored_bytes,
      })
      const all = { retention: { keep_daily: 5 }, timezone: "Europe/Berlin" }
      assert.lengthOf((yield* preview(ask, policy_id, all)).body.keep, 3)
      const listed = (yield* ask("GET", "/v1/backups")).body.backups
      assert.lengthOf(listed, 3)
      const [policy] = (yield* ask("GET", "/v1/policies")).body.policies
      assert.deepInclude(policy, { target_id, retention: { keep_last: 3 } })
    }),
  )
  served("200: undeleted backups are kept, and count for no rule", (ask) =>
    Effect.gen(function* () {
      const { target_id, backup_id, policy_id } = yield* backedUp(ask, { policy: true })
      yield* expire(target_id, backup_id)
      yield* run(uuid(77), 3)
      const { body } = yield* ask("POST", `/v1/backups/${backup_id}/undelete`)
      yield* run(body.job.id, 4)
      const { keep, expire: going } = (yield* preview(ask, policy_id, {
        retention: { keep_last: 1 },
      })).body
      assert.deepEqual(
        keep.map(({ reasons }: { readonly reasons: unknown }) => reasons),
        [["undeleted"]],
      )
      assert.deepEqual(going, [])
    }),
  )
  for (const [how, body, detail] of [
    ["without a retention", {}, "body.retention"],
    ["with a retention that keeps nothing", { retention: {} }, "body.retention"],
    ["with an unknown field", { retention: { keep_last: 1 }, x: 1 }, "body.x"],
    ["with a zone that is none", { retention: { keep_last: 1 }, timezone: "Mars/One" }, "zone"],
  ] as const) {
    served(`400: a body ${how}`, (ask) =>
      Effect.gen(function* () {
        const { policy_id } = yield* backedUp(ask, { policy: true })
        isRefused(yield* preview(ask, policy_id, body), 400, "svc.validation_error", detail)
      }),
    )
  }
  served("404: another project's policy, or none", (ask) =>
    Effect.gen(function* () {
      const { policy_id } = yield* backedUp(ask, { policy: true })
      const body = { retention: { keep_last: 1 } }
      isRefused(yield* preview(ask, policy_id, body, "tenant_b"), 404, "svc.not_found")
      isRefused(yield* preview(ask, unknown_id, body), 404, "svc.not_found")
    }),
  )
  served(
    "200 in Shape B",
    (ask) =>
      Effect.gen(function* () {
        const { backup_id, policy_id } = yield* backedUpInBucket(ask)
        const { body } = yield* preview(ask, policy_id, { retention: { keep_monthly: 1 } })
        assert.equal(body.keep[0].backup_id, backup_id)
      }),
    { shape: "B" },
  )
})

describe("coverage", () => {
  served("shows the last tested backup, and a failure until the next success", (ask) =>
    Effect.gen(function* () {
      const { target_id, backup_id } = yield* backedUp(ask, { policy: true })
      const place = {
        backup_id: BackupId.make(backup_id),
        project_id: project_a,
        share_id: share_a,
        target_id: TargetId.make(target_id),
      }
      const entry = Effect.map(
        ask("GET", "/v1/admin/coverage", undefined, admin),
        ({ body }) => body.coverage[0],
      )
      const failed = uuid(91)
      yield* tell(...testBackup(JobId.make(failed), place))
      const { facts, hold } = yield* begin(failed, 3)
      yield* tell(...failJob(facts, hold, engine_failure))
      const broken = yield* entry
      assert.isNull(broken.last_proven_restorable)
      const { detail: reason } = engine_failure
      assert.deepInclude(broken.restore_test_failure, { backup_id, reason })
      yield* tell(...testBackup(JobId.make(uuid(92)), place))
      yield* run(uuid(92), 4)
      const proven = yield* entry
      assert.isNull(proven.restore_test_failure)
      const { taken_at } = snapshot
      assert.deepInclude(proven.last_proven_restorable, { backup_id, taken_at })
      yield* tell(address(Backup, backup_id, FailRestoreTest.make({ reason: "It differs." })))
      const again = yield* entry
      assert.deepEqual(again.last_proven_restorable, proven.last_proven_restorable)
      assert.equal(again.restore_test_failure.reason, "It differs.")
      const before = yield* ask(
        "GET",
        "/v1/admin/coverage?as_of=2020-01-01T00:00:00Z",
        undefined,
        admin,
      )
      assert.deepEqual(before.body.coverage, [])
    }),
  )
})
