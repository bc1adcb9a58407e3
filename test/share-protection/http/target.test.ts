import { assert, describe } from "@effect/vitest"
import { Effect, Struct } from "effect"
import { Log } from "#events/log.ts"
import { Outage } from "../../world/log/frail-log.ts"
import {
  available,
  bucket,
  made,
  secrets,
  tenant_b,
  unknown_id,
} from "../../world/share-protection/http/given.ts"
import {
  capabilities,
  project_a,
  trust_a,
  trust_b,
  World,
} from "../../world/share-protection/http/ports.ts"
import { isRefused, served } from "../../world/share-protection/http/served.ts"
import { secretRef } from "../../world/share-protection/samples.ts"

const uuid_v7 = /^[\da-f]{8}-[\da-f]{4}-7[\da-f]{3}-[89ab][\da-f]{3}-[\da-f]{12}$/

describe("POST /v1/targets", () => {
  served("202: registers a bucket and starts its enrollment", (ask) =>
    Effect.gen(function* () {
      const { status, headers, body } = yield* ask("POST", "/v1/targets", bucket)
      assert.equal(status, 202)
      const { target, job } = body
      assert.match(target.id, uuid_v7)
      assert.include(target, {
        name: "Backups",
        endpoint: "https://s3.example.org",
        bucket: "backups",
        status: "pending",
        addressing_mode: "path",
        trust_id: trust_a,
        project_id: project_a,
        registered_by: "user-a",
        repository_password_ref: null,
        ca_cert_ref: null,
        preflight_at: null,
        capabilities: null,
        reason: null,
      })
      assert.deepEqual(target.vault_secret_map, secrets)
      assert.include(job, {
        job_type: "target_enroll",
        state: "queued",
        progress: 0,
        attempt: 1,
        resource_type: "target",
        resource_id: target.id,
        target_id: target.id,
        project_id: project_a,
        error: null,
        error_category: null,
        worker_id: null,
      })
      assert.equal(headers.get("location"), `/v1/jobs/${job.id}`)
      assert.match(headers.get("x-almanac-position") ?? "", /^\d+$/)
      const found = yield* ask("GET", `/v1/targets/${target.id}`)
      assert.deepEqual(found.body, target)
      assert.deepEqual((yield* ask("GET", `/v1/jobs/${job.id}`)).body, job)
    }),
  )
  served("accepts the secrets as a list too, and returns a map", (ask) =>
    Effect.gen(function* () {
      const rest = Struct.omit(bucket, ["vault_secret_map"])
      const vault_secret_refs = [secretRef(1), secretRef(2)]
      const { target } = yield* made(ask, "/v1/targets", { ...rest, vault_secret_refs })
      assert.deepEqual(target.vault_secret_map, secrets)
      assert.notProperty(target, "vault_secret_refs")
    }),
  )
  served("needs no trust and no secrets: it is pending until they are set", (ask) =>
    Effect.gen(function* () {
      const { name, endpoint, bucket: of } = bucket
      const body = { name, endpoint, bucket: of, addressing_mode: "virtual", region: "north" }
      const { target } = yield* made(ask, "/v1/targets", body)
      assert.include(target, { status: "pending", addressing_mode: "virtual", region: "north" })
      assert.deepInclude(target, { trust_id: null, vault_secret_map: null })
    }),
  )

  const { name, endpoint, ...bare } = bucket
  const wrong: ReadonlyArray<readonly [string, unknown, string]> = [
    ["without a name", { endpoint, ...bare }, "body.name"],
    ["without an endpoint", { name, ...bare }, "body.endpoint"],
    ["without a bucket", { name, endpoint }, "body.bucket"],
    ["with a name that is a number", { ...bucket, name: 7 }, "body.name"],
    ["with a blank name", { ...bucket, name: "  " }, "body.name"],
    ["with a name too long", { ...bucket, name: "x".repeat(256) }, "body.name"],
    ["with an endpoint that is no URL", { ...bucket, endpoint: "s3" }, "body.endpoint"],
    ["with a bucket name that S3 has not", { ...bucket, bucket: "Backups_" }, "body.bucket"],
    ["with an unknown field", { ...bucket, colour: "red" }, "body.colour"],
    ["with a field of its own making", { ...bucket, id: unknown_id }, "body.id"],
    ["with an addressing mode of another", { ...bucket, addressing_mode: "dns" }, "addressing"],
    [
      "with half a map",
      { ...bucket, vault_secret_map: { access_key: secretRef(1) } },
      "secret_key",
    ],
    [
      "with secrets that are no hrefs",
      { ...bucket, vault_secret_map: { access_key: "AKIA", secret_key: secretRef(2) } },
      "body.vault_secret_map.access_key",
    ],
    ["with one href of two", { ...bare, name, endpoint, vault_secret_refs: ["x"] }, "body"],
    ["with both forms", { ...bucket, vault_secret_refs: [secretRef(1), secretRef(2)] }, "not both"],
    ["that is no object", "[]", "body"],
    ["that is empty", "", "body"],
    ["that is no JSON", "{", "body"],
  ]
  for (const [how, body, detail] of wrong) {
    served(`400: a body ${how}`, (ask) =>
      Effect.gen(function* () {
        const answer = yield* ask("POST", "/v1/targets", body)
        isRefused(answer, 400, "svc.validation_error", detail)
        const { body: all } = yield* ask("GET", "/v1/targets")
        assert.deepEqual(all.targets, [])
      }),
    )
  }
  served("403: a revoked trust, and nothing is stored", (ask) =>
    Effect.gen(function* () {
      const answer = yield* ask("POST", "/v1/targets", { ...bucket, trust_id: "gone" })
      isRefused(answer, 403, "svc.trust_access_denied")
      assert.deepEqual((yield* ask("GET", "/v1/targets")).body.targets, [])
    }),
  )
  served("403: a trust of another project, or of another user", (ask) =>
    Effect.gen(function* () {
      const foreign = yield* ask("POST", "/v1/targets", { ...bucket, trust_id: trust_b })
      isRefused(foreign, 403, "svc.trust_access_denied")
      const { trusts } = yield* World
      trusts.set("colleague", { project_id: project_a, user_id: "user-c" })
      const other = yield* ask("POST", "/v1/targets", { ...bucket, trust_id: "colleague" })
      isRefused(other, 403, "svc.trust_access_denied")
    }),
  )
  served("503: the identity service is unavailable", (ask) =>
    Effect.gen(function* () {
      ;(yield* World).down.add("identity")
      isRefused(yield* ask("POST", "/v1/targets", bucket), 503, "svc.backend_unavailable")
    }),
  )
  served("503: the log is unavailable", (ask) =>
    Effect.gen(function* () {
      ;(yield* Outage).down = true
      isRefused(yield* ask("POST", "/v1/targets", bucket), 503, "svc.backend_unavailable")
    }),
  )
  served(
    "403: the project has its quota; another one has its own",
    (ask) =>
      Effect.gen(function* () {
        yield* made(ask, "/v1/targets", bucket)
        const { target } = yield* made(ask, "/v1/targets", bucket)
        const detail = "2 targets"
        isRefused(yield* ask("POST", "/v1/targets", bucket), 403, "svc.quota_exceeded", detail)
        const theirs = { ...bucket, trust_id: trust_b }
        assert.equal((yield* ask("POST", "/v1/targets", theirs, tenant_b)).status, 202)
        assert.equal((yield* ask("DELETE", `/v1/targets/${target.id}`)).status, 204)
        assert.equal((yield* ask("POST", "/v1/targets", bucket)).status, 202)
      }),
    { settings: { quota: { targets: 2 } } },
  )
  served("is in the log with its actor, and contains no secret", (ask) =>
    Effect.gen(function* () {
      const { target } = yield* made(ask, "/v1/targets", bucket)
      const last = yield* (yield* Log).load(`share-protection.target.${target.id}`)
      assert.equal(last?.commit.actor, "a")
      assert.notInclude(JSON.stringify(last), "token")
    }),
  )
})

describe("POST /v1/targets with enrollment.dispatch=inline", () => {
  const inline = { settings: { enrollment: { dispatch: "inline" } } } as const
  served(
    "202: the bucket has passed its checks, with the tenant's keys",
    (ask) =>
      Effect.gen(function* () {
        yield* made(ask, "/v1/targets", bucket)
        assert.deepEqual((yield* World).preflights, ["A backups access/secret"])
      }),
    inline,
  )
  served(
    "422: a check fails, and nothing is stored",
    (ask) =>
      Effect.gen(function* () {
        ;(yield* World).failing = "object_lock"
        const answer = yield* ask("POST", "/v1/targets", bucket)
        isRefused(answer, 422, "svc.target_preflight_failed", /^object_lock: /)
        assert.deepEqual((yield* ask("GET", "/v1/targets")).body.targets, [])
        assert.deepEqual((yield* ask("GET", "/v1/jobs")).body.jobs, [])
      }),
    inline,
  )
  served(
    "202: a target without a trust is not checked yet",
    (ask) =>
      Effect.gen(function* () {
        const body = Struct.omit(bucket, ["trust_id"])
        yield* made(ask, "/v1/targets", body)
        assert.deepEqual((yield* World).preflights, [])
      }),
    inline,
  )
  served(
    "503: there is no adapter to S3",
    (ask) =>
      Effect.gen(function* () {
        isRefused(yield* ask("POST", "/v1/targets", bucket), 503, "svc.backend_unavailable")
      }),
    { ...inline, bare: true },
  )
})

describe("GET /v1/targets", () => {
  served("200: a page of the project's own, oldest first", (ask) =>
    Effect.gen(function* () {
      const one = (yield* made(ask, "/v1/targets", bucket)).target
      const two = (yield* made(ask, "/v1/targets", { ...bucket, name: "Other" })).target
      yield* made(ask, "/v1/targets", { ...bucket, trust_id: trust_b }, "tenant_b")
      const { status, body } = yield* ask("GET", "/v1/targets")
      assert.equal(status, 200)
      assert.deepEqual(body, {
        targets: [one, two],
        pagination: { limit: 100, count: 2, next_marker: null },
      })
    }),
  )
  served("200: those of a status", (ask) =>
    Effect.gen(function* () {
      const id = yield* available(ask)
      yield* made(ask, "/v1/targets", bucket)
      const { body } = yield* ask("GET", "/v1/targets?status=available")
      assert.deepEqual(
        body.targets.map((target: { id: string }) => target.id),
        [id],
      )
      assert.equal((yield* ask("GET", "/v1/targets?status=pending")).body.targets.length, 1)
    }),
  )
  served("400: an unknown status", (ask) =>
    Effect.gen(function* () {
      isRefused(yield* ask("GET", "/v1/targets?status=new"), 400, "svc.validation_error", "status")
    }),
  )
  served("200: as of a time", (ask) =>
    Effect.gen(function* () {
      const { target } = yield* made(ask, "/v1/targets", bucket)
      yield* Effect.sleep(5)
      yield* ask("PATCH", `/v1/targets/${target.id}`, { name: "Renamed" })
      const then = encodeURIComponent(target.created_at)
      const { body } = yield* ask("GET", `/v1/targets?as_of=${then}`)
      assert.deepEqual(body.targets, [target])
      const one = yield* ask("GET", `/v1/targets/${target.id}?as_of=${then}`)
      assert.equal(one.body.name, "Backups")
      assert.equal((yield* ask("GET", `/v1/targets/${target.id}`)).body.name, "Renamed")
      const before = yield* ask("GET", "/v1/targets?as_of=2020-01-01T00:00:00Z")
      assert.deepEqual(before.body.targets, [])
    }),
  )
  served("400: as of an invalid time", (ask) =>
    Effect.gen(function* () {
      isRefused(yield* ask("GET", "/v1/targets?as_of=yesterday"), 400, "svc.validation_error")
    }),
  )
})

describe("GET /v1/targets/{id}", () => {
  served("404: another project's, none, or an invalid id", (ask) =>
    Effect.gen(function* () {
      const { target } = yield* made(ask, "/v1/targets", bucket)
      const path = `/v1/targets/${target.id}`
      isRefused(yield* ask("GET", path, undefined, tenant_b), 404, "svc.not_found")
      isRefused(yield* ask("GET", `/v1/targets/${unknown_id}`), 404, "svc.not_found")
      isRefused(yield* ask("GET", "/v1/targets/nonsense"), 404, "svc.not_found")
      assert.equal(
        (yield* ask("GET", path.toUpperCase().replace("/V1/TARGETS", "/v1/targets"))).status,
        200,
      )
    }),
  )
  served("shows the results of the enrollment", (ask) =>
    Effect.gen(function* () {
      const { body } = yield* ask("GET", `/v1/targets/${yield* available(ask)}`)
      assert.deepInclude(body, {
        status: "available",
        capabilities,
        preflight_at: capabilities.checked_at,
        repository_password_ref: secretRef(3),
        repository_format: 1,
      })
    }),
  )
  served("503: no 404 while the log is unavailable", (ask) =>
    Effect.gen(function* () {
      ;(yield* Outage).down = true
      const answer = yield* ask("GET", `/v1/targets/${unknown_id}`)
      isRefused(answer, 503, "svc.backend_unavailable")
    }),
  )
})
