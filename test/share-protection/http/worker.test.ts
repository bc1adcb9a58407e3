import { assert, describe } from "@effect/vitest"
import { Effect } from "effect"
import { address } from "#actors/commands.ts"
import { LiveWorkers } from "#actors/share-protection/ports/live-workers.ts"
import { Rollout } from "#actors/share-protection/rollout.ts"
import { Worker } from "#actors/share-protection/worker.ts"
import { DomainId, ProjectId } from "#schemas/share-protection/id.ts"
import { CompleteRolloutDomain } from "#schemas/share-protection/rollout.ts"
import { BootWorker, ConfirmRetirement, MarkWorkerDead } from "#schemas/share-protection/worker.ts"
import {
  admin,
  available,
  bucket,
  made,
  unknown_id,
} from "../../world/share-protection/http/given.ts"
import { domain_id, project_a } from "../../world/share-protection/http/ports.ts"
import { type Client, isRefused, served } from "../../world/share-protection/http/served.ts"
import {
  begin,
  other_worker_id,
  register,
  tell,
  worker_id,
} from "../../world/share-protection/http/transitions.ts"

const get = (ask: Client, path: string) => ask("GET", path, undefined, admin)
const boot = (domain_id: string) =>
  BootWorker.make({
    project_id: ProjectId.make("project-workers"),
    domain_id: DomainId.make(domain_id),
    image: "worker-1",
  })
const post = (ask: Client, path: string, body?: unknown) => ask("POST", path, body, admin)

describe("GET /v1/admin/workers", () => {
  served("200: each with its state, its slots and its last heartbeat", (ask) =>
    Effect.gen(function* () {
      yield* register()
      yield* register(other_worker_id, "worker-2")
      yield* (yield* LiveWorkers).publish({ worker_id, jobs: [] })
      const { status, body } = yield* get(ask, "/v1/admin/workers")
      assert.equal(status, 200)
      const [one, other] = body.workers
      assert.include(one, {
        id: worker_id,
        hostname: "host",
        state: "ready",
        domain_id,
        running_jobs: 0,
        image_version: "worker-1",
        engine_version: "0.18.0",
        capacity_slots: 8,
        project_id: "project-workers",
      })
      assert.match(one.heartbeat_at, /^\d{4}-.*Z$/)
      assert.deepInclude(other, { id: other_worker_id, heartbeat_at: null })
      assert.deepEqual(body.pagination, { limit: 100, count: 2, next_marker: null })
    }),
  )
  served("200: those of an image, of a state", (ask) =>
    Effect.gen(function* () {
      yield* register()
      yield* register(other_worker_id, "worker-2")
      yield* post(ask, `/v1/admin/workers/${worker_id}/drain`)
      const of = (query: string) =>
        Effect.map(get(ask, `/v1/admin/workers?${query}`), ({ body }) =>
          body.workers.map(({ id }: { readonly id: string }) => id),
        )
      assert.deepEqual(yield* of("image_version=worker-2"), [other_worker_id])
      assert.deepEqual(yield* of("image_version=other"), [])
      assert.deepEqual(yield* of("state=draining"), [worker_id])
      isRefused(yield* get(ask, "/v1/admin/workers?state=asleep"), 400, "svc.validation_error")
    }),
  )
  served(
    "200: in Shape B as items",
    (ask) =>
      Effect.gen(function* () {
        yield* register()
        const { body } = yield* get(ask, "/v1/admin/workers")
        assert.deepEqual([body.items.length, body.workers], [1, undefined])
      }),
    { shape: "B" },
  )
})

describe("POST /v1/admin/workers/{id}/drain and /retire", () => {
  served("202: a ready worker drains, then retires", (ask) =>
    Effect.gen(function* () {
      yield* register()
      const path = `/v1/admin/workers/${worker_id}`
      const drained = yield* post(ask, `${path}/drain`)
      assert.deepEqual([drained.status, drained.body.state], [202, "draining"])
      assert.match(drained.headers.get("x-almanac-position") ?? "", /^\d+$/)
      const retired = yield* post(ask, `${path}/retire`)
      assert.deepEqual([retired.status, retired.body.state], [202, "retiring"])
      yield* tell(address(Worker, worker_id, ConfirmRetirement.make({})))
      const [found] = (yield* get(ask, "/v1/admin/workers")).body.workers
      assert.equal(found.state, "retired")
    }),
  )
  served("409: drain twice, retire without a drain, idle or not", (ask) =>
    Effect.gen(function* () {
      yield* register()
      const path = `/v1/admin/workers/${worker_id}`
      isRefused(yield* post(ask, `${path}/retire`), 409, "svc.conflict")
      const { job } = yield* made(ask, "/v1/targets", bucket)
      yield* begin(job.id, 1)
      isRefused(yield* post(ask, `${path}/retire`), 409, "svc.conflict")
      assert.equal((yield* post(ask, `${path}/drain`)).status, 202)
      isRefused(yield* post(ask, `${path}/drain`), 409, "svc.conflict")
      assert.equal((yield* post(ask, `${path}/retire`)).status, 202)
      isRefused(yield* post(ask, `${path}/drain`), 409, "svc.conflict")
      isRefused(yield* post(ask, `${path}/retire`), 409, "svc.conflict")
    }),
  )
  served("409: a dead worker", (ask) =>
    Effect.gen(function* () {
      yield* register()
      yield* tell(address(Worker, worker_id, MarkWorkerDead.make({ reason: "silent" })))
      const path = `/v1/admin/workers/${worker_id}`
      isRefused(yield* post(ask, `${path}/drain`), 409, "svc.conflict")
      isRefused(yield* post(ask, `${path}/retire`), 409, "svc.conflict")
    }),
  )
  for (const id of [unknown_id, "no.such.worker"]) {
    served(`404: no worker ${id}`, (ask) =>
      Effect.gen(function* () {
        isRefused(yield* post(ask, `/v1/admin/workers/${id}/drain`), 404, "svc.not_found")
        isRefused(yield* post(ask, `/v1/admin/workers/${id}/retire`), 404, "svc.not_found")
      }),
    )
  }
})

describe("/v1/admin/rollouts", () => {
  const body = { image: "worker-2", domain_ids: ["default", domain_id] }
  served("202: a rollout runs, at its first domain", (ask) =>
    Effect.gen(function* () {
      const made = yield* post(ask, "/v1/admin/rollouts", body)
      assert.equal(made.status, 202)
      assert.deepEqual(made.body, {
        id: made.body.id,
        ...body,
        state: "running",
        current_domain_id: "default",
        replaced_workers: 0,
        reason: null,
        created_at: made.body.created_at,
        updated_at: made.body.created_at,
      })
      const one = yield* get(ask, `/v1/admin/rollouts/${made.body.id}`)
      assert.deepEqual([one.status, one.body], [200, made.body])
      const all = yield* get(ask, "/v1/admin/rollouts")
      assert.deepEqual(all.body.rollouts, [made.body])
    }),
  )
  const wrong: ReadonlyArray<readonly [string, object, string]> = [
    ["an image that does not exist", { ...body, image: "none" }, "svc_worker_image"],
    ["an image that is no worker's", { ...body, image: "plain" }, "svc_worker_image"],
    ["no domain", { ...body, domain_ids: [] }, "body.domain_ids"],
    ["a domain twice", { ...body, domain_ids: ["a", "a"] }, "body.domain_ids"],
    ["a domain that is no id", { ...body, domain_ids: ["a b"] }, "body.domain_ids"],
    ["no image", { domain_ids: ["a"] }, "body.image"],
    ["an unknown field", { ...body, speed: 2 }, "body.speed"],
    ["a misspelt domain", { ...body, domain_ids: ["default", "rset"] }, "target belongs to rset"],
  ]
  for (const [what, body, detail] of wrong) {
    served(`400: ${what}`, (ask) =>
      Effect.gen(function* () {
        const answer = yield* post(ask, "/v1/admin/rollouts", body)
        isRefused(answer, 400, "svc.validation_error", detail)
        assert.deepEqual((yield* get(ask, "/v1/admin/rollouts")).body.rollouts, [])
      }),
    )
  }
  served("202: domains that have a worker, a setting, a target or a template are known", (ask) =>
    Effect.gen(function* () {
      const settings = { image: "worker-2", domain_ids: ["set", "e".repeat(32)] }
      const refused = yield* post(ask, "/v1/admin/rollouts", settings)
      isRefused(refused, 400, "svc.validation_error", `target belongs to set, ${"e".repeat(32)};`)
      yield* ask("PATCH", "/v1/admin/domains/set", { quotas: { targets: 1 } }, admin)
      yield* tell(address(Worker, worker_id, boot("e".repeat(32))))
      assert.equal((yield* post(ask, "/v1/admin/rollouts", settings)).status, 202)
    }),
  )
  served("reports that there was nothing to replace", (ask) =>
    Effect.gen(function* () {
      const { id } = (yield* post(ask, "/v1/admin/rollouts", body)).body
      for (const domain of body.domain_ids) {
        const through = CompleteRolloutDomain.make({ domain_id: DomainId.make(domain) })
        yield* tell(address(Rollout, id, through))
      }
      const wanted = { state: "succeeded", replaced_workers: 0 }
      const one = (yield* get(ask, `/v1/admin/rollouts/${id}`)).body
      assert.deepInclude(one, wanted)
      assert.match(one.reason, /none was replaced/)
      assert.deepEqual((yield* get(ask, "/v1/admin/rollouts")).body.rollouts, [one])
    }),
  )
  served("409: another one runs", (ask) =>
    Effect.gen(function* () {
      const { id } = (yield* post(ask, "/v1/admin/rollouts", body)).body
      const second = yield* post(ask, "/v1/admin/rollouts", { ...body, image: "worker-1" })
      isRefused(second, 409, "svc.conflict", id)
      assert.equal((yield* get(ask, "/v1/admin/rollouts")).body.rollouts.length, 1)
    }),
  )
  served("404: no such id", (ask) =>
    Effect.gen(function* () {
      isRefused(yield* get(ask, `/v1/admin/rollouts/${unknown_id}`), 404, "svc.not_found")
      isRefused(yield* get(ask, "/v1/admin/rollouts/x"), 404, "svc.not_found")
    }),
  )
  served(
    "503: there is no adapter to a compute service",
    (ask) =>
      Effect.gen(function* () {
        const answer = yield* post(ask, "/v1/admin/rollouts", body)
        isRefused(answer, 503, "svc.backend_unavailable", "configured")
      }),
    { bare: true },
  )
})

describe("POST /v1/admin/targets/{id}/repo-format-upgrade", () => {
  const path = (id: string) => `/v1/admin/targets/${id}/repo-format-upgrade`
  served("202: the target, and the job that upgrades it", (ask) =>
    Effect.gen(function* () {
      const id = yield* available(ask)
      const { status, headers, body } = yield* post(ask, path(id))
      assert.equal(status, 202)
      assert.include(body.target, { id, project_id: project_a })
      assert.include(body.job, { job_type: "repo_format_upgrade", state: "queued", target_id: id })
      assert.equal(headers.get("location"), `/v1/jobs/${body.job.id}`)
    }),
  )
  served("409: already in progress", (ask) =>
    Effect.gen(function* () {
      const id = yield* available(ask)
      const { job } = (yield* post(ask, path(id))).body
      isRefused(yield* post(ask, path(id)), 409, "svc.repository_locked", job.id)
    }),
  )
  served("409: the target is not enrolled", (ask) =>
    Effect.gen(function* () {
      const { target } = yield* made(ask, "/v1/targets", bucket)
      isRefused(yield* post(ask, path(target.id)), 409, "svc.conflict")
    }),
  )
  served("409: workers of two images, until the old one is gone", (ask) =>
    Effect.gen(function* () {
      const id = yield* available(ask)
      yield* register(other_worker_id, "worker-2")
      const mixed = /^MixedFleetBackupEngineFormatUnsafe\b/
      isRefused(yield* post(ask, path(id)), 409, "svc.conflict", mixed)
      yield* tell(address(Worker, worker_id, MarkWorkerDead.make({ reason: "silent" })))
      assert.equal((yield* post(ask, path(id))).status, 202)
    }),
  )
  served(
    "409: a worker of another image than new workers have, or than its domain's",
    (ask) =>
      Effect.gen(function* () {
        const id = yield* available(ask)
        isRefused(yield* post(ask, path(id)), 409, "svc.conflict", /^MixedFleet/)
        const domain = `/v1/admin/domains/${domain_id}`
        yield* ask("PATCH", domain, { worker_boot_image: "worker-1" }, admin)
        assert.equal((yield* post(ask, path(id))).status, 202)
      }),
    { settings: { conductor: { worker_boot_image: "worker-2" } } },
  )
  served("403: without the role svc_admin", (ask) =>
    Effect.gen(function* () {
      const id = yield* available(ask)
      const answer = yield* ask("POST", path(id), undefined, { token: "plain_admin" })
      isRefused(answer, 403, "svc.forbidden")
    }),
  )
  served("404: no such id", (ask) =>
    Effect.gen(function* () {
      isRefused(yield* post(ask, path(unknown_id)), 404, "svc.not_found")
    }),
  )
})
