import { assert, describe } from "@effect/vitest"
import { Effect } from "effect"
import { address } from "#actors/commands.ts"
import { Job } from "#actors/share-protection/job.ts"
import { settleJob } from "#actors/share-protection/jobs/transitions.ts"
import { LiveWorkers } from "#actors/share-protection/ports/live-workers.ts"
import { JobId } from "#schemas/share-protection/id.ts"
import { AdvanceJob, job_steps } from "#schemas/share-protection/job.ts"
import {
  admin,
  available,
  bucket,
  made,
  policyOf,
  tenant_b,
  unknown_id,
} from "../../world/share-protection/http/given.ts"
import { project_a, project_b, share_a, trust_b } from "../../world/share-protection/http/ports.ts"
import { type Client, isRefused, served } from "../../world/share-protection/http/served.ts"
import { begin, fail, run, tell, worker_id } from "../../world/share-protection/http/transitions.ts"

const instant = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/

/** Requests a backup into an enrolled target. */
const backup = Effect.fnUntraced(function* (ask: Client) {
  const target_id = yield* available(ask)
  const { backup, job } = yield* made(ask, "/v1/backups", { share_id: share_a, target_id })
  return { target_id, backup_id: String(backup.id), job_id: String(job.id) }
})

const idsOf = (ask: Client, path: string, token = "tenant") =>
  Effect.map(ask("GET", path, undefined, { token }), ({ body }) =>
    body.jobs.map(({ id }: { readonly id: string }) => id),
  )

describe("GET /v1/jobs", () => {
  served("200: those of the project, newest first; of a resource, a target, a state", (ask) =>
    Effect.gen(function* () {
      const { target_id, backup_id, job_id } = yield* backup(ask)
      const theirs = yield* made(ask, "/v1/targets", { ...bucket, trust_id: trust_b }, "tenant_b")
      const all = yield* idsOf(ask, "/v1/jobs")
      assert.equal(all.length, 2)
      assert.equal(all[0], job_id)
      assert.deepEqual(yield* idsOf(ask, `/v1/jobs?resource_id=${backup_id}`), [job_id])
      assert.deepEqual(yield* idsOf(ask, `/v1/jobs?target_id=${target_id}`), all)
      assert.deepEqual(yield* idsOf(ask, "/v1/jobs?state=queued"), [job_id])
      assert.deepEqual(yield* idsOf(ask, `/v1/jobs?target_id=${unknown_id}`), [])
      assert.deepEqual(yield* idsOf(ask, "/v1/jobs", "tenant_b"), [theirs.job.id])
      isRefused(yield* ask("GET", "/v1/jobs?state=new"), 400, "svc.validation_error")
      isRefused(yield* ask("GET", "/v1/jobs?target_id=x"), 400, "svc.validation_error")
    }),
  )
})

describe("GET /v1/jobs/{id}", () => {
  served("200: each step, with the progress that its worker reported", (ask) =>
    Effect.gen(function* () {
      const { job_id } = yield* backup(ask)
      const path = `/v1/jobs/${job_id}`
      const { facts, hold } = yield* begin(job_id, 2)
      for (const to of job_steps) {
        if (to !== job_steps[0]) {
          yield* tell(address(Job, facts.job_id, AdvanceJob.make({ ...hold, to })))
        }
        const { body } = yield* ask("GET", path)
        assert.deepInclude(body, { state: to, worker_id, progress: 0, bytes_done: null })
        assert.match(body.started_at, instant)
      }
      const jobs = [{ job_id: JobId.make(job_id), progress: 42, bytes_done: 420, bytes_total: 0 }]
      yield* (yield* LiveWorkers).publish({ worker_id, jobs })
      const result = (yield* ask("GET", path)).body
      assert.deepInclude(result, { progress: 42, bytes_done: 420, bytes_total: null })
      const known = jobs.map((job) => ({ ...job, bytes_total: 1000 }))
      yield* (yield* LiveWorkers).publish({ worker_id, jobs: known })
      assert.include((yield* ask("GET", path)).body, { bytes_total: 1000 })
    }),
  )
  served("200: complete, at 100 percent", (ask) =>
    Effect.gen(function* () {
      const { job_id } = yield* backup(ask)
      const late = { progress: 90, bytes_done: 900, bytes_total: 1000 }
      const jobs = [{ job_id: JobId.make(job_id), ...late }]
      yield* (yield* LiveWorkers).publish({ worker_id, jobs })
      yield* run(job_id, 2)
      const { body } = yield* ask("GET", `/v1/jobs/${job_id}`)
      const whole = { progress: 100, bytes_done: 1000, bytes_total: 1000 }
      assert.deepInclude(body, { state: "available", ...whole, error: null })
      assert.equal(body.error_category, null)
      assert.match(body.finished_at, instant)
    }),
  )
  served("200: failed, with the reason", (ask) =>
    Effect.gen(function* () {
      const { job_id } = yield* backup(ask)
      yield* fail(job_id, 2)
      const { body } = yield* ask("GET", `/v1/jobs/${job_id}`)
      const error = { code: "svc.engine_error", detail: "The engine exited with 1." }
      assert.deepInclude(body, {
        state: "error",
        error,
        error_category: "operator_action_required",
      })
    }),
  )
  served("404: another project's, or none", (ask) =>
    Effect.gen(function* () {
      const { job_id } = yield* backup(ask)
      const path = `/v1/jobs/${job_id}`
      isRefused(yield* ask("GET", path, undefined, tenant_b), 404, "svc.not_found")
      isRefused(yield* ask("GET", `/v1/jobs/${unknown_id}`), 404, "svc.not_found")
      isRefused(yield* ask("GET", "/v1/jobs/x"), 404, "svc.not_found")
    }),
  )
})

describe("POST /v1/jobs/{id}/cancel", () => {
  served("202: ends in error, together with its resource", (ask) =>
    Effect.gen(function* () {
      const { job_id, backup_id } = yield* backup(ask)
      const { status, headers, body } = yield* ask("POST", `/v1/jobs/${job_id}/cancel`)
      assert.equal(status, 202)
      assert.match(headers.get("x-almanac-position") ?? "", /^\d+$/)
      assert.deepInclude(body, {
        id: job_id,
        state: "error",
        error_category: "tenant_action_required",
        error: { code: "svc.conflict", detail: "cancelled" },
      })
      const found = (yield* ask("GET", `/v1/backups/${backup_id}`)).body
      assert.include(found, { status: "error", reason: "cancelled" })
    }),
  )
  served("202: while a worker runs it, and an enrollment too", (ask) =>
    Effect.gen(function* () {
      const { job_id } = yield* backup(ask)
      yield* begin(job_id, 2)
      assert.equal((yield* ask("POST", `/v1/jobs/${job_id}/cancel`)).body.state, "error")
      const { target, job } = yield* made(ask, "/v1/targets", bucket)
      assert.equal((yield* ask("POST", `/v1/jobs/${job.id}/cancel`)).status, 202)
      const found = (yield* ask("GET", `/v1/targets/${target.id}`)).body
      assert.include(found, { status: "error", reason: "cancelled" })
    }),
  )
  served("409: already ended", (ask) =>
    Effect.gen(function* () {
      const { job_id } = yield* backup(ask)
      yield* run(job_id, 2)
      const path = `/v1/jobs/${job_id}/cancel`
      isRefused(yield* ask("POST", path), 409, "svc.conflict")
      isRefused(
        yield* ask("POST", path.replace("/v1/", "/v1/admin/"), undefined, admin),
        409,
        "svc.conflict",
      )
    }),
  )
  served("404: another project's, which continues", (ask) =>
    Effect.gen(function* () {
      const { job_id } = yield* backup(ask)
      const answer = yield* ask("POST", `/v1/jobs/${job_id}/cancel`, undefined, tenant_b)
      isRefused(answer, 404, "svc.not_found")
      assert.equal((yield* ask("GET", `/v1/jobs/${job_id}`)).body.state, "queued")
    }),
  )
})

describe("/v1/admin/jobs", () => {
  served("200: those of all projects, and of one", (ask) =>
    Effect.gen(function* () {
      const { job_id } = yield* backup(ask)
      const theirs = yield* made(ask, "/v1/targets", { ...bucket, trust_id: trust_b }, "tenant_b")
      assert.equal((yield* idsOf(ask, "/v1/admin/jobs", "admin")).length, 3)
      const of = (query: string) => idsOf(ask, `/v1/admin/jobs?${query}`, "admin")
      assert.deepEqual(yield* of(`project_id=${project_b}`), [theirs.job.id])
      assert.deepEqual(yield* of(`project_id=${project_a}&state=queued`), [job_id])
      assert.deepEqual(yield* of("job_type=backup"), [job_id])
      assert.deepEqual(yield* of("job_type=restore"), [])
      assert.deepEqual(yield* of(`resource_id=${theirs.target.id}`), [theirs.job.id])
    }),
  )
  served("200: one of any project, as its tenant sees it", (ask) =>
    Effect.gen(function* () {
      const { job_id } = yield* backup(ask)
      const own = yield* ask("GET", `/v1/jobs/${job_id}`)
      const { status, body } = yield* ask("GET", `/v1/admin/jobs/${job_id}`, undefined, admin)
      assert.deepEqual([status, body], [200, own.body])
      const none = yield* ask("GET", `/v1/admin/jobs/${unknown_id}`, undefined, admin)
      isRefused(none, 404, "svc.not_found")
    }),
  )
  served("202: cancels a job of any project", (ask) =>
    Effect.gen(function* () {
      const { job_id } = yield* backup(ask)
      const { status, body } = yield* ask(
        "POST",
        `/v1/admin/jobs/${job_id}/cancel`,
        undefined,
        admin,
      )
      assert.deepEqual([status, body.id, body.state], [202, job_id, "error"])
      const none = yield* ask("POST", `/v1/admin/jobs/${unknown_id}/cancel`, undefined, admin)
      isRefused(none, 404, "svc.not_found")
    }),
  )
  served("202: retries a job in error, and queues its resource again", (ask) =>
    Effect.gen(function* () {
      const { job_id, backup_id } = yield* backup(ask)
      yield* fail(job_id, 2)
      const { status, body } = yield* ask(
        "POST",
        `/v1/admin/jobs/${job_id}/retry`,
        undefined,
        admin,
      )
      assert.equal(status, 202)
      assert.deepInclude(body, {
        id: job_id,
        state: "queued",
        attempt: 2,
        error: null,
        error_category: null,
        worker_id: null,
        started_at: null,
        finished_at: null,
        progress: 0,
      })
      assert.equal((yield* ask("GET", `/v1/backups/${backup_id}`)).body.status, "queued")
      yield* run(job_id, 3)
      assert.equal((yield* ask("GET", `/v1/backups/${backup_id}`)).body.status, "available")
    }),
  )
  served("202: retries a cancelled backup of a policy, under the policy", (ask) =>
    Effect.gen(function* () {
      const target_id = yield* available(ask)
      const { id: policy_id } = yield* made(ask, "/v1/policies", policyOf(target_id))
      const { job } = yield* made(ask, "/v1/backups", { share_id: share_a, policy_id })
      yield* ask("POST", `/v1/jobs/${job.id}/cancel`)
      const retried = yield* ask("POST", `/v1/admin/jobs/${job.id}/retry`, undefined, admin)
      assert.equal(retried.status, 202)
      const answer = yield* ask("DELETE", `/v1/policies/${policy_id}`)
      isRefused(answer, 409, "svc.policy_has_inflight_backup")
    }),
  )
  served("202: retries an enrollment, a restore and an upgrade", (ask) =>
    Effect.gen(function* () {
      const retry = (id: string) => ask("POST", `/v1/admin/jobs/${id}/retry`, undefined, admin)
      const { target_id, backup_id, job_id } = yield* backup(ask)
      yield* run(job_id, 2)
      const { restore, job } = yield* made(ask, "/v1/restores", { backup_id })
      yield* fail(job.id, 3)
      assert.equal((yield* retry(job.id)).body.state, "queued")
      assert.equal((yield* ask("GET", `/v1/restores/${restore.id}`)).body.status, "queued")
      yield* run(job.id, 4)
      const path = `/v1/admin/targets/${target_id}/repo-format-upgrade`
      const upgrade = (yield* ask("POST", path, undefined, admin)).body.job.id
      yield* fail(upgrade, 5)
      assert.equal((yield* retry(upgrade)).body.state, "queued")
      const other = yield* made(ask, "/v1/targets", bucket)
      yield* fail(other.job.id, 1)
      assert.equal((yield* retry(other.job.id)).body.state, "queued")
      assert.equal((yield* ask("GET", `/v1/targets/${other.target.id}`)).body.status, "pending")
    }),
  )
  served("409: a job that is not in error", (ask) =>
    Effect.gen(function* () {
      const { job_id } = yield* backup(ask)
      const path = `/v1/admin/jobs/${job_id}/retry`
      isRefused(yield* ask("POST", path, undefined, admin), 409, "svc.conflict")
      yield* run(job_id, 2)
      isRefused(yield* ask("POST", path, undefined, admin), 409, "svc.conflict")
    }),
  )
  served("409: an obstacle to a retry, which has no partial effect", (ask) =>
    Effect.gen(function* () {
      const { target_id, job_id } = yield* backup(ask)
      yield* fail(job_id, 2)
      const other = yield* made(ask, "/v1/backups", { share_id: share_a, target_id })
      const path = `/v1/admin/jobs/${job_id}/retry`
      isRefused(yield* ask("POST", path, undefined, admin), 409, "svc.conflict", other.backup.id)
      assert.equal((yield* ask("GET", `/v1/jobs/${job_id}`)).body.state, "error")
    }),
  )
  served("404: none, or its target is gone", (ask) =>
    Effect.gen(function* () {
      const none = yield* ask("POST", `/v1/admin/jobs/${unknown_id}/retry`, undefined, admin)
      isRefused(none, 404, "svc.not_found")
      const { target, job } = yield* made(ask, "/v1/targets", bucket)
      yield* ask("POST", `/v1/jobs/${job.id}/cancel`)
      yield* ask("DELETE", `/v1/targets/${target.id}`)
      const gone = yield* ask("POST", `/v1/admin/jobs/${job.id}/retry`, undefined, admin)
      isRefused(gone, 404, "svc.not_found")
    }),
  )
  served("a cancelled job keeps its slot until its worker reports that it stopped", (ask) =>
    Effect.gen(function* () {
      const { job_id } = yield* backup(ask)
      const { facts, hold } = yield* begin(job_id, 2)
      const running = Effect.map(
        ask("GET", "/v1/admin/workers", undefined, admin),
        ({ body }) => body.workers[0].running_jobs,
      )
      yield* ask("POST", `/v1/jobs/${job_id}/cancel`)
      assert.equal(yield* running, 1)
      yield* tell(...settleJob(facts, hold))
      assert.equal(yield* running, 0)
    }),
  )
})
