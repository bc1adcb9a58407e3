import { assert, describe } from "@effect/vitest"
import { Effect, Struct } from "effect"
import {
  bucketOf,
  made,
  owner,
  template,
  tenant_b,
  unknown_id,
} from "../../world/share-protection/http/given.ts"
import {
  project_a,
  project_b,
  trust_a,
  trust_b,
  World,
} from "../../world/share-protection/http/ports.ts"
import {
  type Client,
  isRefused,
  type Services,
  served,
} from "../../world/share-protection/http/served.ts"
import { fail, register, run } from "../../world/share-protection/http/transitions.ts"
import { secretRef } from "../../world/share-protection/samples.ts"

const other_owner = { token: "other_owner" }

const servedB = (name: string, body: (ask: Client) => Effect.Effect<void, unknown, Services>) =>
  served(name, body, { shape: "B" })

/** A template with one bucket per project, or one shared bucket. */
const templateOf = (ask: Client, bucket_scheme: "per_project" | "shared" = "per_project") =>
  Effect.map(made(ask, "/v1/target-templates", { ...template, bucket_scheme }, "owner"), ({ id }) =>
    String(id),
  )

describe("POST /v1/targets in Shape B", () => {
  servedB("202: the bare bucket, with its job by its place", (ask) =>
    Effect.gen(function* () {
      const template_id = yield* templateOf(ask)
      const { status, headers, body } = yield* ask(
        "POST",
        "/v1/targets",
        bucketOf(template_id),
        owner,
      )
      assert.equal(status, 202)
      assert.include(body, {
        bucket_name: "backups",
        name: "backups",
        template_id,
        status: "enrolling",
        project_id: project_a,
        registered_by: "user-owner",
        usage_stats: null,
        s3_access_key_ref: secretRef(1),
        s3_secret_key_ref: secretRef(2),
        engine_key_ref: null,
        engine_key_trust_id: trust_a,
      })
      for (const field of ["job", "target", "bucket", "endpoint", "vault_secret_map"]) {
        assert.notProperty(body, field)
      }
      assert.equal(headers.get("location"), `/v1/jobs/${body.job_id}`)
      assert.deepEqual((yield* ask("GET", `/v1/targets/${body.id}`, undefined, owner)).body, body)
      const job = yield* ask("GET", headers.get("location") ?? "", undefined, owner)
      assert.include(job.body, { job_type: "target_enroll", project_id: project_a })
    }),
  )
  servedB("202: a bucket that projects share has no project", (ask) =>
    Effect.gen(function* () {
      const template_id = yield* templateOf(ask, "shared")
      const body = Struct.omit(bucketOf(template_id), ["project_id"])
      const made = yield* ask("POST", "/v1/targets", body, owner)
      assert.deepInclude(made.body, { status: "enrolling", project_id: null })
      const job = yield* ask("GET", `/v1/jobs/${made.body.job_id}`, undefined, owner)
      assert.deepInclude(job.body, { project_id: null, resource_id: made.body.id })
    }),
  )
  servedB("400: a missing field, or one that does not match the template", (ask) =>
    Effect.gen(function* () {
      const template_id = yield* templateOf(ask)
      const shared_id = yield* templateOf(ask, "shared")
      const body = bucketOf(template_id)
      const no_name = Struct.omit(body, ["bucket_name"])
      const no_template = Struct.omit(body, ["template_id"])
      const no_access = Struct.omit(body, ["s3_access_key_ref"])
      const no_secret = Struct.omit(body, ["s3_secret_key_ref"])
      const no_project = Struct.omit(body, ["project_id"])
      const wrong: ReadonlyArray<readonly [object, string]> = [
        [no_name, "body.bucket_name"],
        [no_template, "body.template_id"],
        [no_access, "body.s3_access_key_ref"],
        [no_secret, "body.s3_secret_key_ref"],
        [no_project, "body.project_id"],
        [{ ...body, template_id: shared_id }, "body.project_id"],
        [{ ...body, template_id: unknown_id }, "body.template_id"],
        [{ ...body, endpoint: "https://s3" }, "body.endpoint"],
      ]
      for (const [body, detail] of wrong) {
        const answer = yield* ask("POST", "/v1/targets", body, owner)
        isRefused(answer, 400, "svc.validation_error", detail)
      }
      const foreign = yield* ask("POST", "/v1/targets", body, other_owner)
      isRefused(foreign, 400, "svc.validation_error", "body.template_id")
    }),
  )
  servedB("403: a project's token, or a trust of another project", (ask) =>
    Effect.gen(function* () {
      const body = bucketOf(yield* templateOf(ask))
      isRefused(yield* ask("POST", "/v1/targets", body), 403, "svc.forbidden")
      const other = yield* ask("POST", "/v1/targets", { ...body, trust_id: trust_b }, owner)
      isRefused(other, 403, "svc.trust_access_denied")
      const gone = yield* ask("POST", "/v1/targets", { ...body, trust_id: "gone" }, owner)
      isRefused(gone, 403, "svc.trust_access_denied")
    }),
  )
  served(
    "403: the project's quota is that of the template's domain",
    (ask) =>
      Effect.gen(function* () {
        const body = bucketOf(yield* templateOf(ask))
        yield* made(ask, "/v1/targets", body, "owner")
        isRefused(yield* ask("POST", "/v1/targets", body, owner), 403, "svc.quota_exceeded")
        const theirs = { ...body, project_id: project_b, trust_id: trust_b }
        assert.equal((yield* ask("POST", "/v1/targets", theirs, owner)).status, 202)
      }),
    { shape: "B", settings: { quota: { targets: 1 } } },
  )
  served(
    "422: with enrollment.dispatch=inline a check fails, versioning among them",
    (ask) =>
      Effect.gen(function* () {
        const body = bucketOf(yield* templateOf(ask))
        ;(yield* World).failing = "versioning"
        const answer = yield* ask("POST", "/v1/targets", body, owner)
        isRefused(answer, 422, "svc.target_preflight_failed", /^versioning: /)
        assert.deepEqual((yield* World).preflights, ["B backups access/secret"])
      }),
    { shape: "B", settings: { enrollment: { dispatch: "inline" } } },
  )
})

describe("targets in Shape B", () => {
  servedB("are visible only to their project and the domain's owner", (ask) =>
    Effect.gen(function* () {
      const template_id = yield* templateOf(ask)
      const own = yield* made(ask, "/v1/targets", bucketOf(template_id), "owner")
      const shared_id = yield* templateOf(ask, "shared")
      const body = Struct.omit(bucketOf(shared_id), ["project_id"])
      const shared = yield* made(ask, "/v1/targets", body, "owner")
      const all = yield* ask("GET", "/v1/targets", undefined, owner)
      assert.deepEqual(all.body.items, [own, shared])
      assert.deepEqual((yield* ask("GET", "/v1/targets")).body.items, [own])
      assert.deepEqual((yield* ask("GET", "/v1/targets", undefined, tenant_b)).body.items, [])
      assert.deepEqual((yield* ask("GET", "/v1/targets", undefined, other_owner)).body.items, [])
      for (const status of ["enrolling", "pending"]) {
        const of = yield* ask("GET", `/v1/targets?status=${status}`, undefined, owner)
        if (status === "enrolling") assert.deepEqual(of.body.items, [own, shared])
        else isRefused(of, 400, "svc.validation_error", "query.status")
      }
      const at = `/v1/targets/${own.id}`
      assert.equal((yield* ask("GET", at)).status, 200)
      isRefused(yield* ask("GET", at, undefined, tenant_b), 404, "svc.not_found")
      isRefused(yield* ask("GET", at, undefined, other_owner), 404, "svc.not_found")
      isRefused(yield* ask("GET", `/v1/targets/${shared.id}`), 404, "svc.not_found")
    }),
  )
  servedB("have jobs that the domain's owner sees for one target at a time", (ask) =>
    Effect.gen(function* () {
      const own = yield* made(ask, "/v1/targets", bucketOf(yield* templateOf(ask)), "owner")
      const of = (query: string, token: string) =>
        ask("GET", `/v1/jobs${query}`, undefined, { token })
      const listed = yield* of(`?target_id=${own.id}`, "owner")
      assert.deepEqual(
        listed.body.items.map((job: { id: string }) => job.id),
        [own.job_id],
      )
      assert.equal((yield* of(`?resource_id=${own.id}`, "owner")).body.items.length, 1)
      assert.deepEqual((yield* of(`?target_id=${own.id}`, "other_owner")).body.items, [])
      isRefused(yield* of("", "owner"), 400, "svc.validation_error", "target_id")
      const job = `/v1/jobs/${own.job_id}`
      isRefused(yield* ask("GET", job, undefined, other_owner), 404, "svc.not_found")
      isRefused(yield* ask("POST", `${job}/cancel`, undefined, owner), 403, "svc.forbidden")
    }),
  )
  servedB("PATCH rotates the keys, one or both, and the trust", (ask) =>
    Effect.gen(function* () {
      const own = yield* made(ask, "/v1/targets", bucketOf(yield* templateOf(ask)), "owner")
      const patch = (body: object) => ask("PATCH", `/v1/targets/${own.id}`, body, owner)
      const one = yield* patch({ s3_access_key_ref: secretRef(4) })
      assert.include(one.body, {
        s3_access_key_ref: secretRef(4),
        s3_secret_key_ref: secretRef(2),
      })
      const both = yield* patch({ s3_secret_key_ref: secretRef(5), name: "Renamed" })
      assert.include(both.body, { s3_secret_key_ref: secretRef(5), name: "Renamed" })
      assert.equal((yield* patch({ trust_id: null })).body.engine_key_trust_id, null)
      const back = yield* patch({ engine_key_trust_id: trust_a })
      assert.equal(back.body.engine_key_trust_id, trust_a)
      isRefused(yield* patch({ trust_id: trust_b }), 403, "svc.trust_access_denied")
      isRefused(
        yield* patch({ template_id: unknown_id }),
        400,
        "svc.field_immutable",
        "template_id",
      )
      isRefused(yield* patch({ bucket_name: "other" }), 400, "svc.field_immutable", "bucket_name")
      isRefused(yield* patch({ bucket: "other" }), 400, "svc.validation_error", "bucket")
      assert.deepEqual((yield* patch(back.body)).body, back.body)
    }),
  )
  servedB(
    "are available after enrollment, else in error with the reason, and can enroll again",
    (ask) =>
      Effect.gen(function* () {
        const { id, job_id } = yield* made(
          ask,
          "/v1/targets",
          bucketOf(yield* templateOf(ask)),
          "owner",
        )
        yield* register()
        yield* fail(job_id, 1)
        const failed = yield* ask("GET", `/v1/targets/${id}`, undefined, owner)
        assert.include(failed.body, { status: "error", reason: "The engine exited with 1." })
        const again = yield* ask("POST", `/v1/targets/${id}/enroll`, undefined, owner)
        assert.include(again.body, { id, status: "enrolling" })
        yield* run(again.body.job_id, 2)
        const { body } = yield* ask("GET", `/v1/targets/${id}`, undefined, owner)
        assert.include(body, { status: "available", engine_key_ref: secretRef(3) })
        const found = yield* ask("GET", `/v1/targets/${id}/preflight`, undefined, owner)
        assert.deepEqual(found.body, { target_id: id, status: "available", detail: null })
      }),
  )
  servedB("DELETE frees the project's quota and the template", (ask) =>
    Effect.gen(function* () {
      const template_id = yield* templateOf(ask)
      const { id } = yield* made(ask, "/v1/targets", bucketOf(template_id), "owner")
      assert.equal((yield* ask("DELETE", `/v1/targets/${id}`, undefined, owner)).status, 204)
      const gone = yield* ask("DELETE", `/v1/target-templates/${template_id}`, undefined, owner)
      assert.equal(gone.status, 204)
    }),
  )
})
