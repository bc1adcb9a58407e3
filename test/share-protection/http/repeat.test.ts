import { assert, describe } from "@effect/vitest"
import { Effect } from "effect"
import { Commands } from "#actors/commands.ts"
import { createTarget } from "#actors/share-protection/requests.ts"
import { JobId, TargetId } from "#schemas/share-protection/id.ts"
import { Outage } from "../../world/log/frail-log.ts"
import {
  admin,
  available,
  backedUp,
  bucket,
  made,
  policyOf,
  template,
  tenant_b,
} from "../../world/share-protection/http/given.ts"
import {
  project_a,
  share_a,
  share_a2,
  trust_b,
  World,
} from "../../world/share-protection/http/ports.ts"
import {
  type Ask,
  type Client,
  isRefused,
  served,
} from "../../world/share-protection/http/served.ts"
import { fail, register, run } from "../../world/share-protection/http/transitions.ts"
import { target, uuid } from "../../world/share-protection/samples.ts"

const keyed = (key: string, ask: Ask = {}): Ask => ({
  ...ask,
  headers: { "idempotency-key": key },
})

/** Sends the request twice with one key and returns both responses. */
const twice = Effect.fnUntraced(function* (ask: Client, path: string, body: unknown, by: Ask = {}) {
  const first = yield* ask("POST", path, body, keyed("once", by))
  const again = yield* ask("POST", path, body, keyed("once", by))
  assert.deepEqual([again.status, again.body], [first.status, first.body])
  assert.equal(again.headers.get("location"), first.headers.get("location"))
  return first
})

const countOf = (ask: Client, path: string, key: string, token = "tenant") =>
  Effect.map(ask("GET", path, undefined, { token }), ({ body }) => body[key].length)

describe("a POST that is sent again under its Idempotency-Key", () => {
  served("makes one target and one job, with the same response", (ask) =>
    Effect.gen(function* () {
      const { status, body } = yield* twice(ask, "/v1/targets", bucket)
      assert.equal(status, 202)
      assert.match(body.target.id, /^[\da-f]{8}-[\da-f]{4}-7/)
      assert.equal(yield* countOf(ask, "/v1/targets", "targets"), 1)
      assert.equal(yield* countOf(ask, "/v1/jobs", "jobs"), 1)
      const other = yield* ask("POST", "/v1/targets", bucket, keyed("other"))
      assert.notEqual(other.body.target.id, body.target.id)
    }),
  )
  served("makes one policy, backup, restore and rollout", (ask) =>
    Effect.gen(function* () {
      const { target_id, backup_id } = yield* backedUp(ask)
      const policy = yield* twice(ask, "/v1/policies", policyOf(target_id))
      assert.equal(policy.status, 201)
      const backup = { share_id: share_a2, target_id }
      assert.equal((yield* twice(ask, "/v1/backups", backup)).status, 202)
      assert.equal((yield* twice(ask, "/v1/restores", { backup_id })).status, 202)
      const rollout = { image: "worker-1", domain_ids: ["default"] }
      assert.equal((yield* twice(ask, "/v1/admin/rollouts", rollout, admin)).status, 202)
      assert.equal(yield* countOf(ask, "/v1/policies", "policies"), 1)
      assert.equal(yield* countOf(ask, "/v1/backups", "backups"), 2)
      assert.equal(yield* countOf(ask, "/v1/restores", "restores"), 1)
      assert.equal(yield* countOf(ask, "/v1/admin/rollouts", "rollouts", "admin"), 1)
    }),
  )
  served(
    "makes one template",
    (ask) =>
      Effect.gen(function* () {
        const owner = { token: "owner" }
        assert.equal((yield* twice(ask, "/v1/target-templates", template, owner)).status, 201)
        assert.equal(yield* countOf(ask, "/v1/target-templates", "items", "owner"), 1)
      }),
    { shape: "B" },
  )
  served(
    "at the same time makes one template, which is free to be deleted and made again",
    (ask) =>
      Effect.gen(function* () {
        const path = "/v1/target-templates"
        const send = ask("POST", path, template, keyed("once", { token: "owner" }))
        const answers = yield* Effect.all([send, send, send], { concurrency: "unbounded" })
        assert.deepEqual(
          answers.map(({ status }) => status),
          [201, 201, 201],
        )
        assert.equal(new Set(answers.map(({ body }) => body.id)).size, 1)
        assert.equal(yield* countOf(ask, path, "items", "owner"), 1)
        const [{ body }] = answers
        const gone = yield* ask("DELETE", `${path}/${body.id}`, undefined, { token: "owner" })
        assert.equal(gone.status, 204)
        assert.equal((yield* ask("POST", path, template, { token: "owner" })).status, 201)
      }),
    { shape: "B" },
  )
  served("as a PATCH, too: a late duplicate does not undo the next one", (ask) =>
    Effect.gen(function* () {
      const { target_id } = yield* backedUp(ask)
      const made = yield* ask("POST", "/v1/policies", policyOf(target_id))
      const path = `/v1/policies/${made.body.id}`
      for (const name of ["first", "second", "first"]) {
        const { status } = yield* ask("PATCH", path, { name }, keyed(`to ${name}`))
        assert.equal(status, 200)
      }
      assert.equal((yield* ask("GET", path)).body.name, "second")
      assert.equal((yield* ask("PATCH", path, { name: "x" }, keyed("\n"))).status, 400)
      // A deletion is a different command, even with the same key.
      yield* ask("DELETE", path, undefined, keyed("to second"))
      assert.equal((yield* ask("GET", path)).status, 404)
    }),
  )
  served("at the same time makes one", (ask) =>
    Effect.gen(function* () {
      const send = ask("POST", "/v1/targets", bucket, keyed("once"))
      const answers = yield* Effect.all([send, send, send], { concurrency: "unbounded" })
      assert.equal(new Set(answers.map(({ body }) => body.target.id)).size, 1)
      assert.deepEqual(
        answers.map(({ status }) => status),
        [202, 202, 202],
      )
      assert.equal(yield* countOf(ask, "/v1/targets", "targets"), 1)
      assert.equal(yield* countOf(ask, "/v1/jobs", "jobs"), 1)
    }),
  )
  served("gets the original response, even after later changes", (ask) =>
    Effect.gen(function* () {
      const { job, target } = (yield* ask("POST", "/v1/targets", bucket, keyed("once"))).body
      yield* register()
      yield* run(job.id, 1)
      const world = yield* World
      world.trusts.clear()
      const again = yield* ask("POST", "/v1/targets", bucket, keyed("once"))
      assert.equal(again.status, 202)
      assert.include(again.body.target, { id: target.id, status: "available" })
      assert.include(again.body.job, { id: job.id, state: "available" })
      yield* ask("DELETE", `/v1/targets/${target.id}`)
      const gone = yield* ask("POST", "/v1/targets", bucket, keyed("once"))
      isRefused(gone, 404, "svc.not_found")
    }),
  )
  served("by another caller, or to another path, is another request", (ask) =>
    Effect.gen(function* () {
      yield* ask("POST", "/v1/targets", bucket, keyed("once"))
      const theirs = yield* ask(
        "POST",
        "/v1/targets",
        { ...bucket, trust_id: trust_b },
        keyed("once", tenant_b),
      )
      assert.equal(theirs.status, 202)
      const { body } = yield* ask("GET", "/v1/targets", undefined, tenant_b)
      assert.equal(body.targets.length, 1)
    }),
  )
  served("that was rejected is evaluated again", (ask) =>
    Effect.gen(function* () {
      const { target } = yield* made(ask, "/v1/targets", bucket)
      const backup = { share_id: share_a, target_id: target.id }
      const { body } = yield* ask("POST", "/v1/backups", backup)
      isRefused(yield* ask("POST", "/v1/backups", backup, keyed("once")), 409, "svc.conflict")
      yield* ask("POST", `/v1/jobs/${body.job.id}/cancel`)
      assert.equal((yield* ask("POST", "/v1/backups", backup, keyed("once"))).status, 202)
    }),
  )
  served("cancels, retries, drains and upgrades once", (ask) =>
    Effect.gen(function* () {
      const target_id = yield* available(ask)
      const { job } = yield* made(ask, "/v1/backups", { share_id: share_a, target_id })
      const cancel = `/v1/jobs/${job.id}/cancel`
      assert.equal((yield* twice(ask, cancel, undefined)).status, 202)
      const retry = `/v1/admin/jobs/${job.id}/retry`
      assert.equal((yield* twice(ask, retry, undefined, admin)).body.attempt, 2)
      isRefused(yield* ask("POST", retry, undefined, admin), 409, "svc.conflict")
      const upgrade = `/v1/admin/targets/${target_id}/repo-format-upgrade`
      assert.equal((yield* twice(ask, upgrade, undefined, admin)).status, 202)
      const workers = (yield* ask("GET", "/v1/admin/workers", undefined, admin)).body.workers
      const drain = `/v1/admin/workers/${workers[0].id}/drain`
      assert.equal((yield* twice(ask, drain, undefined, admin)).body.state, "draining")
    }),
  )
  served("enrolls again once", (ask) =>
    Effect.gen(function* () {
      const { target, job } = yield* made(ask, "/v1/targets", bucket)
      yield* register()
      yield* fail(job.id, 1)
      const path = `/v1/targets/${target.id}/enroll`
      assert.equal((yield* twice(ask, path, undefined)).status, 202)
      assert.equal(yield* countOf(ask, "/v1/jobs", "jobs"), 2)
    }),
  )
  served("400: an invalid key", (ask) =>
    Effect.gen(function* () {
      const answer = yield* ask("POST", "/v1/targets", bucket, keyed("x".repeat(256)))
      isRefused(answer, 400, "svc.validation_error", "Idempotency-Key")
    }),
  )
})

describe("an Idempotency-Key that comes with something else", () => {
  const isReused = (answer: Effect.Success<ReturnType<Client>>) =>
    isRefused(answer, 422, "svc.validation_error", "Idempotency-Key")

  served("is rejected, and the same request still gets its response", (ask) =>
    Effect.gen(function* () {
      const path = "/v1/targets"
      const first = yield* ask("POST", path, bucket, keyed("once"))
      isReused(yield* ask("POST", path, { ...bucket, bucket: "another" }, keyed("once")))
      isReused(yield* ask("POST", `${path}?x=1`, bucket, keyed("once")))
      const again = yield* ask("POST", path, bucket, keyed("once"))
      assert.deepEqual([again.status, again.body], [202, first.body])
      assert.equal(yield* countOf(ask, path, "targets"), 1)
    }),
  )
  served("is rejected if both are concurrent", (ask) =>
    Effect.gen(function* () {
      const send = (name: string) =>
        ask("POST", "/v1/targets", { ...bucket, bucket: name }, keyed("once"))
      const answers = yield* Effect.all([send("one"), send("another")], {
        concurrency: "unbounded",
      })
      const statuses = answers.map(({ status }) => status)
      assert.deepEqual(
        statuses.toSorted((one, other) => one - other),
        [202, 422],
      )
      assert.equal(yield* countOf(ask, "/v1/targets", "targets"), 1)
    }),
  )
  served("is rejected for requests that create nothing, too", (ask) =>
    Effect.gen(function* () {
      const { target_id } = yield* backedUp(ask)
      const made = yield* ask("POST", "/v1/policies", policyOf(target_id))
      const path = `/v1/policies/${made.body.id}`
      const first = yield* ask("PATCH", path, { name: "first" }, keyed("once"))
      assert.equal(first.status, 200)
      isReused(yield* ask("PATCH", path, { name: "second" }, keyed("once")))
      assert.equal((yield* ask("PATCH", path, { name: "first" }, keyed("once"))).status, 200)
      assert.equal((yield* ask("GET", path)).body.name, "first")
    }),
  )
  served("is accepted if the first request was rejected", (ask) =>
    Effect.gen(function* () {
      isRefused(yield* ask("POST", "/v1/targets", {}, keyed("once")), 400, "svc.validation_error")
      assert.equal((yield* ask("POST", "/v1/targets", bucket, keyed("once"))).status, 202)
    }),
  )
})

describe("a position", () => {
  served("of one response is awaited by the next request", (ask) =>
    Effect.gen(function* () {
      const { headers } = yield* ask("POST", "/v1/targets", bucket)
      const position = headers.get("x-almanac-position") ?? ""
      const seen = { headers: { "x-almanac-position": position } }
      assert.equal((yield* ask("GET", "/v1/targets", undefined, seen)).body.targets.length, 1)
      const never = { headers: { "x-almanac-position": "999999" } }
      const late = yield* ask("GET", "/v1/targets", undefined, never)
      isRefused(late, 503, "svc.backend_unavailable")
      const wrong = { headers: { "x-almanac-position": "soon" } }
      isRefused(yield* ask("GET", "/v1/targets", undefined, wrong), 400, "svc.validation_error")
    }),
  )
  served("of one's own write is awaited, however late the read model is", (ask) =>
    Effect.gen(function* () {
      ;(yield* Outage).lag_ms = 20
      const { status, body } = yield* ask("POST", "/v1/targets", bucket)
      assert.equal(status, 202)
      const path = `/v1/targets/${body.target.id}`
      assert.equal((yield* ask("PATCH", path, { name: "New" })).body.name, "New")
      assert.equal((yield* ask("DELETE", path)).status, 204)
      assert.deepEqual((yield* ask("GET", "/v1/targets")).body.targets, [])
    }),
  )
  served("that is not visible yet is awaited before a 404", (ask) =>
    Effect.gen(function* () {
      ;(yield* Outage).lag_ms = 20
      // Another process writes.
      const { send } = yield* Commands
      const target_id = TargetId.make(uuid(71))
      const fields = { ...target, project_id: project_a, job_id: JobId.make(uuid(72)) }
      const origin = { command_id: "other", actor: "other", at: "2026-11-21T00:00:00.000Z" }
      yield* send(origin, ...createTarget(target_id, fields, 10))
      const answer = yield* ask("GET", `/v1/targets/${target_id}`)
      assert.deepEqual([answer.status, answer.body.id], [200, target_id])
    }),
  )
})
