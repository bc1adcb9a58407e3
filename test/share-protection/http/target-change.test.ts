import { assert, describe } from "@effect/vitest"
import { Effect } from "effect"
import { address } from "#actors/commands.ts"
import { Job } from "#actors/share-protection/job.ts"
import { assignJob } from "#actors/share-protection/jobs/transitions.ts"
import { Log } from "#events/log.ts"
import { CancelJob } from "#schemas/share-protection/job.ts"
import {
  available,
  bucket,
  made,
  policyOf,
  secrets,
  tenant_b,
} from "../../world/share-protection/http/given.ts"
import { capabilities, trust_b, World } from "../../world/share-protection/http/ports.ts"
import { isRefused, served } from "../../world/share-protection/http/served.ts"
import {
  factsOf,
  fail,
  register,
  run,
  tell,
  worker_id,
} from "../../world/share-protection/http/transitions.ts"
import { secretRef } from "../../world/share-protection/samples.ts"

describe("PATCH /v1/targets/{id}", () => {
  served("200: changes mutable fields only", (ask) =>
    Effect.gen(function* () {
      const { target } = yield* made(ask, "/v1/targets", bucket)
      const changes = {
        name: "New",
        endpoint: "https://other.example.org",
        bucket: "other",
        addressing_mode: "virtual",
        ca_cert_ref: secretRef(9),
        region: "south",
      }
      const { status, headers, body } = yield* ask("PATCH", `/v1/targets/${target.id}`, changes)
      assert.equal(status, 200)
      assert.deepEqual(body, { ...target, ...changes, updated_at: body.updated_at })
      assert.match(headers.get("x-almanac-position") ?? "", /^\d+$/)
    }),
  )
  served("200: the secrets in either form, or removed", (ask) =>
    Effect.gen(function* () {
      const { target } = yield* made(ask, "/v1/targets", bucket)
      const path = `/v1/targets/${target.id}`
      const refs = { vault_secret_refs: [secretRef(4), secretRef(5)] }
      const other = { access_key: secretRef(4), secret_key: secretRef(5) }
      assert.deepEqual((yield* ask("PATCH", path, refs)).body.vault_secret_map, other)
      const back = yield* ask("PATCH", path, { vault_secret_map: secrets })
      assert.deepEqual(back.body.vault_secret_map, secrets)
      const none = yield* ask("PATCH", path, { vault_secret_map: null, trust_id: null })
      assert.deepInclude(none.body, { vault_secret_map: null, trust_id: null })
    }),
  )
  served("200: an empty update, or the present values, change nothing", (ask) =>
    Effect.gen(function* () {
      const { target } = yield* made(ask, "/v1/targets", bucket)
      const path = `/v1/targets/${target.id}`
      assert.deepEqual((yield* ask("PATCH", path, {})).body, target)
      assert.deepEqual((yield* ask("PATCH", path, target)).body, target)
    }),
  )
  for (const field of ["id", "project_id", "status", "created_at", "repository_password_ref"]) {
    served(`400: ${field} cannot change`, (ask) =>
      Effect.gen(function* () {
        const { target } = yield* made(ask, "/v1/targets", bucket)
        const answer = yield* ask("PATCH", `/v1/targets/${target.id}`, { [field]: "other" })
        isRefused(answer, 400, "svc.field_immutable", field)
      }),
    )
  }
  served("400: an unknown field, and one of the wrong kind", (ask) =>
    Effect.gen(function* () {
      const { target } = yield* made(ask, "/v1/targets", bucket)
      const path = `/v1/targets/${target.id}`
      isRefused(yield* ask("PATCH", path, { colour: 1 }), 400, "svc.validation_error", "colour")
      isRefused(yield* ask("PATCH", path, { bucket: "B" }), 400, "svc.validation_error", "bucket")
    }),
  )
  served("403: another trust that is unsuitable", (ask) =>
    Effect.gen(function* () {
      const { target } = yield* made(ask, "/v1/targets", bucket)
      const answer = yield* ask("PATCH", `/v1/targets/${target.id}`, { trust_id: trust_b })
      isRefused(answer, 403, "svc.trust_access_denied")
    }),
  )
  served("404: it is another project's", (ask) =>
    Effect.gen(function* () {
      const { target } = yield* made(ask, "/v1/targets", bucket)
      const answer = yield* ask("PATCH", `/v1/targets/${target.id}`, { name: "Mine" }, tenant_b)
      isRefused(answer, 404, "svc.not_found")
      assert.equal((yield* ask("GET", `/v1/targets/${target.id}`)).body.name, "Backups")
    }),
  )
  served("409: the repository of an available target stays where it is", (ask) =>
    Effect.gen(function* () {
      const path = `/v1/targets/${yield* available(ask)}`
      isRefused(yield* ask("PATCH", path, { bucket: "other" }), 409, "svc.conflict")
      assert.equal((yield* ask("PATCH", path, { name: "New" })).status, 200)
    }),
  )
  served("after an error, a change relevant to the enrollment starts another one", (ask) =>
    Effect.gen(function* () {
      const { target, job } = yield* made(ask, "/v1/targets", bucket)
      yield* register()
      yield* fail(job.id, 1)
      const path = `/v1/targets/${target.id}`
      const failed = (yield* ask("GET", path)).body
      assert.include(failed, { status: "error", reason: "The engine exited with 1." })
      assert.include((yield* ask("PATCH", path, { name: "New" })).body, { status: "error" })
      const mended = (yield* ask("PATCH", path, { bucket: "other" })).body
      assert.include(mended, { status: "pending", bucket: "other", reason: null })
      assert.notEqual(mended.job_id, job.id)
      const begun = yield* ask("GET", `/v1/jobs/${mended.job_id}`)
      assert.include(begun.body, { job_type: "target_enroll", state: "queued" })
    }),
  )
})

describe("DELETE /v1/targets/{id}", () => {
  served("204: deletes the record and the rows of its jobs", (ask) =>
    Effect.gen(function* () {
      const { target, job } = yield* made(ask, "/v1/targets", bucket)
      const { status, text, headers } = yield* ask("DELETE", `/v1/targets/${target.id}`)
      assert.deepEqual([status, text], [204, ""])
      assert.match(headers.get("x-almanac-position") ?? "", /^\d+$/)
      isRefused(yield* ask("GET", `/v1/targets/${target.id}`), 404, "svc.not_found")
      isRefused(yield* ask("GET", `/v1/jobs/${job.id}`), 404, "svc.not_found")
      assert.deepEqual((yield* ask("GET", "/v1/targets")).body.targets, [])
      isRefused(yield* ask("DELETE", `/v1/targets/${target.id}`), 404, "svc.not_found")
    }),
  )
  served("204: cancels its waiting jobs", (ask) =>
    Effect.gen(function* () {
      const { target, job } = yield* made(ask, "/v1/targets", bucket)
      yield* ask("DELETE", `/v1/targets/${target.id}`)
      const last = yield* (yield* Log).load(`share-protection.job.${job.id}`)
      assert.deepEqual(
        last?.commit.events.map(({ type }) => type),
        ["JobCancelled"],
      )
    }),
  )
  served("404: another project's, which is unchanged", (ask) =>
    Effect.gen(function* () {
      const { target } = yield* made(ask, "/v1/targets", bucket)
      const path = `/v1/targets/${target.id}`
      isRefused(yield* ask("DELETE", path, undefined, tenant_b), 404, "svc.not_found")
      assert.equal((yield* ask("GET", path)).status, 200)
    }),
  )
  served("409: a policy or a backup references it", (ask) =>
    Effect.gen(function* () {
      const id = yield* available(ask)
      const policy = yield* made(ask, "/v1/policies", policyOf(id))
      isRefused(yield* ask("DELETE", `/v1/targets/${id}`), 409, "svc.target_has_dependents")
      assert.equal((yield* ask("DELETE", `/v1/policies/${policy.id}`)).status, 204)
      assert.equal((yield* ask("DELETE", `/v1/targets/${id}`)).status, 204)
    }),
  )
  served("409: a worker holds its repository", (ask) =>
    Effect.gen(function* () {
      const { target, job } = yield* made(ask, "/v1/targets", bucket)
      yield* register()
      yield* tell(...assignJob(yield* factsOf(job.id), { worker_id, fence: 1 }))
      isRefused(yield* ask("DELETE", `/v1/targets/${target.id}`), 409, "svc.repository_locked")
    }),
  )
})

describe("GET /v1/targets/{id}/preflight", () => {
  served("200: the checks pass now, and are recorded", (ask) =>
    Effect.gen(function* () {
      const { target } = yield* made(ask, "/v1/targets", bucket)
      const { status, body } = yield* ask("GET", `/v1/targets/${target.id}/preflight`)
      assert.equal(status, 200)
      assert.deepEqual(body, { target_id: target.id, status: "available", detail: null })
      const found = (yield* ask("GET", `/v1/targets/${target.id}`)).body
      assert.isString(found.preflight_at)
      assert.deepEqual(found.capabilities, capabilities)
    }),
  )
  for (const check of ["reachability", "read_write", "addressing_style", "object_lock"] as const) {
    served(`422: the check ${check} fails`, (ask) =>
      Effect.gen(function* () {
        const { target } = yield* made(ask, "/v1/targets", bucket)
        ;(yield* World).failing = check
        const answer = yield* ask("GET", `/v1/targets/${target.id}/preflight`)
        isRefused(answer, 422, "svc.target_preflight_failed", new RegExp(`^${check}: `))
        assert.isString((yield* ask("GET", `/v1/targets/${target.id}`)).body.preflight_at)
      }),
    )
  }
  served("422: it has no trust yet, so nothing can be written", (ask) =>
    Effect.gen(function* () {
      const { target } = yield* made(ask, "/v1/targets", { ...bucket, trust_id: null })
      const answer = yield* ask("GET", `/v1/targets/${target.id}/preflight`)
      isRefused(answer, 422, "svc.target_preflight_failed", /^read_write: /)
    }),
  )
  served("403: the trust has no access to a secret", (ask) =>
    Effect.gen(function* () {
      const { target } = yield* made(ask, "/v1/targets", bucket)
      ;(yield* World).secrets.clear()
      const answer = yield* ask("GET", `/v1/targets/${target.id}/preflight`)
      isRefused(answer, 403, "svc.trust_access_denied")
    }),
  )
  served("503: the secrets manager is unavailable", (ask) =>
    Effect.gen(function* () {
      const { target } = yield* made(ask, "/v1/targets", bucket)
      ;(yield* World).down.add("vault")
      const answer = yield* ask("GET", `/v1/targets/${target.id}/preflight`)
      isRefused(answer, 503, "svc.backend_unavailable")
    }),
  )
  served(
    "503: there is no adapter to S3",
    (ask) =>
      Effect.gen(function* () {
        const { target } = yield* made(ask, "/v1/targets", bucket)
        const answer = yield* ask("GET", `/v1/targets/${target.id}/preflight`)
        isRefused(answer, 503, "svc.backend_unavailable", "configured")
      }),
    { bare: true },
  )
  served("404: it is another project's", (ask) =>
    Effect.gen(function* () {
      const { target } = yield* made(ask, "/v1/targets", bucket)
      const path = `/v1/targets/${target.id}/preflight`
      isRefused(yield* ask("GET", path, undefined, tenant_b), 404, "svc.not_found")
      assert.deepEqual((yield* World).preflights, [])
    }),
  )
})

describe("POST /v1/targets/{id}/enroll", () => {
  served("202: after an error, with a new job", (ask) =>
    Effect.gen(function* () {
      const { target, job } = yield* made(ask, "/v1/targets", bucket)
      yield* tell(address(Job, job.id, CancelJob.make({})))
      yield* register()
      const again = (yield* made(ask, "/v1/targets", { ...bucket, name: "Other" })).target
      yield* fail(again.job_id, 1)
      const { status, headers, body } = yield* ask("POST", `/v1/targets/${again.id}/enroll`)
      assert.equal(status, 202)
      assert.include(body.target, { status: "pending", reason: null, job_id: body.job.id })
      assert.notEqual(body.job.id, again.job_id)
      assert.equal(headers.get("location"), `/v1/jobs/${body.job.id}`)
      yield* run(body.job.id, 2)
      assert.equal((yield* ask("GET", `/v1/targets/${again.id}`)).body.status, "available")
      assert.equal((yield* ask("GET", `/v1/targets/${target.id}`)).body.status, "pending")
    }),
  )
  served("202: returns the waiting job, and starts no other", (ask) =>
    Effect.gen(function* () {
      const { target, job } = yield* made(ask, "/v1/targets", bucket)
      const { status, body } = yield* ask("POST", `/v1/targets/${target.id}/enroll`)
      assert.deepEqual([status, body.job.id], [202, job.id])
      assert.equal((yield* ask("GET", "/v1/jobs")).body.jobs.length, 1)
    }),
  )
  served("409: already enrolled", (ask) =>
    Effect.gen(function* () {
      const id = yield* available(ask)
      isRefused(yield* ask("POST", `/v1/targets/${id}/enroll`), 409, "svc.conflict")
    }),
  )
  served("404: it is another project's", (ask) =>
    Effect.gen(function* () {
      const { target } = yield* made(ask, "/v1/targets", bucket)
      const answer = yield* ask("POST", `/v1/targets/${target.id}/enroll`, undefined, tenant_b)
      isRefused(answer, 404, "svc.not_found")
    }),
  )
})
