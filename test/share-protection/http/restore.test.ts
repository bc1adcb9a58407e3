import { assert, describe } from "@effect/vitest"
import { Effect, Struct } from "effect"
import {
  admin,
  available,
  backedUp,
  bucketOf,
  made,
  policyOf,
  template,
  tenant_b,
  unknown_id,
} from "../../world/share-protection/http/given.ts"
import { project_a, share_a } from "../../world/share-protection/http/ports.ts"
import { isRefused, served } from "../../world/share-protection/http/served.ts"
import { begin, fail, register, run } from "../../world/share-protection/http/transitions.ts"
import { uuid } from "../../world/share-protection/samples.ts"

describe("POST /v1/restores", () => {
  served("202: a restore and its job, into a new share by default", (ask) =>
    Effect.gen(function* () {
      const { backup_id, target_id } = yield* backedUp(ask)
      const { status, headers, body } = yield* ask("POST", "/v1/restores", { backup_id })
      assert.equal(status, 202)
      const { restore, job } = body
      assert.deepEqual(restore, {
        id: restore.id,
        backup_id,
        target_id,
        share_id: share_a,
        project_id: project_a,
        mode: "new_share",
        sub_path: null,
        force: false,
        status: "pending",
        dry_run: false,
        plan_hash: null,
        plan: null,
        left_alone: null,
        new_share_id: null,
        files: null,
        bytes: null,
        reason: null,
        job_id: job.id,
        created_at: restore.created_at,
        updated_at: restore.created_at,
      })
      assert.include(job, { job_type: "restore", resource_type: "restore", backup_id })
      assert.equal(headers.get("location"), `/v1/jobs/${job.id}`)
      const path = `/v1/restores/${restore.id}`
      assert.deepEqual((yield* ask("GET", path)).body, restore)
      yield* begin(job.id, 3)
      assert.equal((yield* ask("GET", path)).body.status, "running")
    }),
  )
  served("202: in place with force, of a subtree; reports the new share", (ask) =>
    Effect.gen(function* () {
      const { backup_id } = yield* backedUp(ask)
      const fields = { backup_id, mode: "in_place", force: true, sub_path: "/docs/a b" }
      const { restore } = yield* made(ask, "/v1/restores", fields)
      assert.deepInclude(restore as object, fields)
      const { job, restore: other } = yield* made(ask, "/v1/restores", { backup_id })
      yield* run(job.id, 3)
      const { body } = yield* ask("GET", `/v1/restores/${other.id}`)
      assert.include(body, { status: "available", new_share_id: uuid(41), files: 10 })
    }),
  )
  const wrong: ReadonlyArray<readonly [string, object, string]> = [
    ["without a backup", {}, "body.backup_id"],
    ["with a backup that is no id", { backup_id: "b" }, "body.backup_id"],
    ["with another mode", { backup_id: unknown_id, mode: "over" }, "body.mode"],
    ["with force as a text", { backup_id: unknown_id, force: "yes" }, "body.force"],
    ["with an unknown field", { backup_id: unknown_id, x: 1 }, "body.x"],
    ["with a relative path", { backup_id: unknown_id, sub_path: "docs" }, "body.sub_path"],
    ["with a path that leaves", { backup_id: unknown_id, sub_path: "/a/../b" }, "body.sub_path"],
    ["with an empty path", { backup_id: unknown_id, sub_path: "" }, "body.sub_path"],
  ]
  for (const [how, body, detail] of wrong) {
    served(`400: a body ${how}`, (ask) =>
      Effect.gen(function* () {
        isRefused(yield* ask("POST", "/v1/restores", body), 400, "svc.validation_error", detail)
      }),
    )
  }
  for (const force of [undefined, false]) {
    served(`409: in place with force ${force}, for any backup`, (ask) =>
      Effect.gen(function* () {
        const body = { backup_id: unknown_id, mode: "in_place", ...(force === false && { force }) }
        isRefused(yield* ask("POST", "/v1/restores", body), 409, "svc.force_required")
      }),
    )
  }
  served("404: another project's backup, or none", (ask) =>
    Effect.gen(function* () {
      const { backup_id } = yield* backedUp(ask)
      const theirs = yield* ask("POST", "/v1/restores", { backup_id }, tenant_b)
      isRefused(theirs, 404, "svc.not_found")
      const none = yield* ask("POST", "/v1/restores", { backup_id: unknown_id })
      isRefused(none, 404, "svc.not_found")
    }),
  )
  served("409: the backup is not available", (ask) =>
    Effect.gen(function* () {
      const target_id = yield* available(ask)
      const { backup, job } = yield* made(ask, "/v1/backups", { share_id: share_a, target_id })
      const restore = ask("POST", "/v1/restores", { backup_id: backup.id })
      isRefused(yield* restore, 409, "svc.conflict")
      yield* fail(job.id, 2)
      isRefused(yield* restore, 409, "svc.conflict")
      assert.deepEqual((yield* ask("GET", "/v1/restores")).body.restores, [])
    }),
  )
  served("409: the target's format is being upgraded", (ask) =>
    Effect.gen(function* () {
      const { backup_id, target_id } = yield* backedUp(ask)
      yield* ask("POST", `/v1/admin/targets/${target_id}/repo-format-upgrade`, undefined, admin)
      const answer = yield* ask("POST", "/v1/restores", { backup_id })
      isRefused(answer, 409, "svc.repository_locked")
    }),
  )
})

describe("GET /v1/restores", () => {
  served("200: newest first, and those of a backup", (ask) =>
    Effect.gen(function* () {
      const { backup_id } = yield* backedUp(ask)
      const one = (yield* made(ask, "/v1/restores", { backup_id })).restore
      const two = (yield* made(ask, "/v1/restores", { backup_id })).restore
      const { body } = yield* ask("GET", "/v1/restores")
      assert.deepEqual(body, {
        restores: [two, one],
        pagination: { limit: 100, count: 2, next_marker: null },
      })
      const of = yield* ask("GET", `/v1/restores?backup_id=${backup_id}`)
      assert.equal(of.body.restores.length, 2)
      const other = yield* ask("GET", `/v1/restores?backup_id=${unknown_id}`)
      assert.deepEqual(other.body.restores, [])
      const theirs = yield* ask("GET", "/v1/restores", undefined, tenant_b)
      assert.deepEqual(theirs.body.restores, [])
    }),
  )
  served("404: another project's, or none", (ask) =>
    Effect.gen(function* () {
      const { backup_id } = yield* backedUp(ask)
      const { restore } = yield* made(ask, "/v1/restores", { backup_id })
      const path = `/v1/restores/${restore.id}`
      isRefused(yield* ask("GET", path, undefined, tenant_b), 404, "svc.not_found")
      isRefused(yield* ask("GET", `/v1/restores/${unknown_id}`), 404, "svc.not_found")
    }),
  )
  served("shows the reason of its failure", (ask) =>
    Effect.gen(function* () {
      const { backup_id } = yield* backedUp(ask)
      const { restore, job } = yield* made(ask, "/v1/restores", { backup_id })
      yield* fail(job.id, 3)
      const { body } = yield* ask("GET", `/v1/restores/${restore.id}`)
      assert.include(body, { status: "error", reason: "The engine exited with 1." })
    }),
  )
})

describe("restores in Shape B", () => {
  served(
    "202: the bare restore, with its job by its place",
    (ask) =>
      Effect.gen(function* () {
        const { id } = yield* made(ask, "/v1/target-templates", template, "owner")
        const target = yield* made(ask, "/v1/targets", bucketOf(String(id)), "owner")
        const policy = Struct.omit(policyOf(""), ["target_id"])
        const { id: policy_id } = yield* made(ask, "/v1/policies", {
          ...policy,
          target_template_id: id,
        })
        yield* register()
        yield* run(target.job_id, 1)
        const backup = yield* made(ask, "/v1/backups", { share_id: share_a, policy_id })
        yield* run(backup.job_id, 2)
        const answer = yield* ask("POST", "/v1/restores", { backup_id: backup.id })
        assert.equal(answer.status, 202)
        assert.include(answer.body, { backup_id: backup.id, status: "pending" })
        assert.notProperty(answer.body, "job")
        assert.equal(answer.headers.get("location"), `/v1/jobs/${answer.body.job_id}`)
        assert.deepEqual((yield* ask("GET", "/v1/restores")).body.items, [answer.body])
      }),
    { shape: "B" },
  )
})
