import { assert, describe } from "@effect/vitest"
import { Effect, Struct } from "effect"
import { Outage } from "../../world/log/frail-log.ts"
import {
  available,
  backedUp,
  bucket,
  made,
  owner,
  policyOf,
  template,
  tenant_b,
  unknown_id,
} from "../../world/share-protection/http/given.ts"
import {
  project_a,
  share_a,
  share_a2,
  share_b,
  trust_b,
  World,
} from "../../world/share-protection/http/ports.ts"
import { type Client, isRefused, served } from "../../world/share-protection/http/served.ts"
import { run } from "../../world/share-protection/http/transitions.ts"
import { uuid } from "../../world/share-protection/samples.ts"

/** A target that waits for its enrollment; a policy may already refer to it. */
const targetOf = (ask: Client) =>
  Effect.map(made(ask, "/v1/targets", bucket), ({ target }) => String(target.id))

describe("POST /v1/policies", () => {
  served("201: the policy alone, with its defaults", (ask) =>
    Effect.gen(function* () {
      const policy = policyOf(yield* targetOf(ask))
      const { status, headers, body } = yield* ask("POST", "/v1/policies", policy)
      assert.equal(status, 201)
      assert.deepEqual(body, {
        id: body.id,
        ...policy,
        project_id: project_a,
        timezone: "UTC",
        enabled: true,
        include_patterns: [],
        exclude_patterns: [],
        max_retries: 0,
        last_tick: null,
        created_at: body.created_at,
        updated_at: body.created_at,
      })
      assert.match(headers.get("x-almanac-position") ?? "", /^\d+$/)
      assert.deepEqual((yield* ask("GET", `/v1/policies/${body.id}`)).body, body)
    }),
  )
  served("201: with all its fields", (ask) =>
    Effect.gen(function* () {
      const policy = {
        ...policyOf(yield* targetOf(ask)),
        timezone: "Europe/Berlin",
        enabled: false,
        max_retries: 10,
        include_patterns: ["*.doc"],
        exclude_patterns: ["*.tmp", "cache/"],
        retention: { keep_last: 1, keep_daily: 7, keep_weekly: 4, keep_monthly: 12 },
      }
      assert.deepInclude((yield* made(ask, "/v1/policies", policy)) as object, policy)
    }),
  )

  const body = policyOf(unknown_id)
  const no_name = Struct.omit(body, ["name"])
  const no_share = Struct.omit(body, ["share_id"])
  const no_target = Struct.omit(body, ["target_id"])
  const no_schedule = Struct.omit(body, ["schedule"])
  const no_retention = Struct.omit(body, ["retention"])
  const wrong: ReadonlyArray<readonly [string, object, string]> = [
    ["without a name", no_name, "body.name"],
    ["without a share", no_share, "body.share_id"],
    ["without a target", no_target, "body.target_id"],
    ["without a schedule", no_schedule, "body.schedule"],
    ["without a retention", no_retention, "body.retention"],
    ["with an unknown field", { ...body, colour: 1 }, "body.colour"],
    ["with a target template", { ...body, target_template_id: uuid(1) }, "target_template_id"],
    ["with a share that is no id", { ...body, share_id: "share" }, "body.share_id"],
    ["with enabled as a text", { ...body, enabled: "yes" }, "body.enabled"],
    ["with retries below 0", { ...body, max_retries: -1 }, "body.max_retries"],
    ["with retries above 10", { ...body, max_retries: 11 }, "body.max_retries"],
    ["with half a retry", { ...body, max_retries: 1.5 }, "body.max_retries"],
    ["with a retention of nothing", { ...body, retention: { keep_last: 0 } }, "body.retention"],
    ["with an empty retention", { ...body, retention: {} }, "body.retention"],
    ["with a negative retention", { ...body, retention: { keep_last: -1 } }, "keep_last"],
    ["with a rule that there is none of", { ...body, retention: { keep_all: 1 } }, "keep_all"],
    ["with patterns that are no list", { ...body, exclude_patterns: "*" }, "exclude_patterns"],
    ["with a pattern that nothing reads", { ...body, include_patterns: ["a", "[b"] }, "patterns.1"],
  ]
  for (const [how, body, detail] of wrong) {
    served(`400: a body ${how}`, (ask) =>
      Effect.gen(function* () {
        isRefused(yield* ask("POST", "/v1/policies", body), 400, "svc.validation_error", detail)
      }),
    )
  }
  served("400: an invalid schedule, an unknown time zone", (ask) =>
    Effect.gen(function* () {
      const policy = policyOf(yield* targetOf(ask))
      for (const schedule of ["nonsense", "61 * * * *", "* * * * * *", "0 0 30 2 *", "@reboot"]) {
        const answer = yield* ask("POST", "/v1/policies", { ...policy, schedule })
        isRefused(answer, 400, "svc.validation_error", "body.schedule")
      }
      const zoned = yield* ask("POST", "/v1/policies", { ...policy, timezone: "Mars/Olympus" })
      isRefused(zoned, 400, "svc.validation_error", "body.timezone: The time zone")
      assert.deepEqual((yield* ask("GET", "/v1/policies")).body.policies, [])
    }),
  )
  served("400: a missing share or target, or another project's", (ask) =>
    Effect.gen(function* () {
      const policy = policyOf(yield* targetOf(ask))
      for (const id of [share_b, uuid(99)]) {
        const answer = yield* ask("POST", "/v1/policies", { ...policy, share_id: id })
        isRefused(answer, 400, "svc.validation_error", "body.share_id")
      }
      const theirs = yield* made(ask, "/v1/targets", { ...bucket, trust_id: trust_b }, "tenant_b")
      for (const id of [theirs.target.id, unknown_id]) {
        const answer = yield* ask("POST", "/v1/policies", { ...policy, target_id: id })
        isRefused(answer, 400, "svc.validation_error", "body.target_id")
      }
    }),
  )
  served(
    "403: the project has its quota",
    (ask) =>
      Effect.gen(function* () {
        const target_id = yield* targetOf(ask)
        const { id } = yield* made(ask, "/v1/policies", policyOf(target_id))
        const second = { ...policyOf(target_id), share_id: share_a2 }
        isRefused(yield* ask("POST", "/v1/policies", second), 403, "svc.quota_exceeded")
        yield* ask("DELETE", `/v1/policies/${id}`)
        assert.equal((yield* ask("POST", "/v1/policies", second)).status, 201)
      }),
    { settings: { quota: { policies: 1 } } },
  )
  served("409: the share has a policy already", (ask) =>
    Effect.gen(function* () {
      const policy = policyOf(yield* targetOf(ask))
      const { id } = yield* made(ask, "/v1/policies", policy)
      const again = yield* ask("POST", "/v1/policies", { ...policy, name: "Another" })
      isRefused(again, 409, "svc.conflict", String(id))
      assert.equal((yield* ask("GET", "/v1/policies")).body.policies.length, 1)
    }),
  )
  served("503: the share service is unavailable", (ask) =>
    Effect.gen(function* () {
      const policy = policyOf(yield* targetOf(ask))
      ;(yield* World).down.add("shares")
      isRefused(yield* ask("POST", "/v1/policies", policy), 503, "svc.backend_unavailable")
    }),
  )
})

describe("GET /v1/policies", () => {
  served("200: a page of the project's own, and those of a share or a target", (ask) =>
    Effect.gen(function* () {
      const target_id = yield* targetOf(ask)
      const other_id = yield* targetOf(ask)
      const one = yield* made(ask, "/v1/policies", policyOf(target_id))
      const two = yield* made(ask, "/v1/policies", { ...policyOf(other_id), share_id: share_a2 })
      const { body } = yield* ask("GET", "/v1/policies")
      const pagination = { limit: 100, count: 2, next_marker: null }
      assert.deepEqual(body, { policies: [one, two], pagination })
      const of = (query: string) =>
        Effect.map(ask("GET", `/v1/policies?${query}`), ({ body }) => body.policies)
      assert.deepEqual(yield* of(`share_id=${share_a2}`), [two])
      assert.deepEqual(yield* of(`target_id=${target_id}`), [one])
      assert.deepEqual(yield* of(`target_id=${unknown_id}`), [])
      const theirs = yield* ask("GET", "/v1/policies", undefined, tenant_b)
      assert.deepEqual(theirs.body.policies, [])
      isRefused(yield* ask("GET", "/v1/policies?share_id=x"), 400, "svc.validation_error")
    }),
  )
  served("200: as of a time, including items deleted since", (ask) =>
    Effect.gen(function* () {
      const one = yield* made(ask, "/v1/policies", policyOf(yield* targetOf(ask)))
      yield* Effect.sleep(5)
      yield* ask("DELETE", `/v1/policies/${one.id}`)
      const then = `as_of=${one.created_at}`
      assert.deepEqual((yield* ask("GET", `/v1/policies?${then}`)).body.policies, [one])
      assert.deepEqual((yield* ask("GET", `/v1/policies/${one.id}?${then}`)).body, one)
      isRefused(yield* ask("GET", `/v1/policies/${one.id}`), 404, "svc.not_found")
    }),
  )
})

describe("PATCH /v1/policies/{id}", () => {
  served("200: changes mutable fields", (ask) =>
    Effect.gen(function* () {
      const one = yield* made(ask, "/v1/policies", policyOf(yield* targetOf(ask)))
      const changes = {
        name: "Hourly",
        schedule: "@hourly",
        timezone: "Asia/Kolkata",
        enabled: false,
        retention: { keep_monthly: 2 },
        include_patterns: ["a"],
        exclude_patterns: ["b"],
        max_retries: 3,
      }
      const { status, body } = yield* ask("PATCH", `/v1/policies/${one.id}`, changes)
      assert.equal(status, 200)
      assert.deepEqual(body, { ...one, ...changes, updated_at: body.updated_at })
    }),
  )
  served("400: an immutable field with another value; with the present one it is accepted", (ask) =>
    Effect.gen(function* () {
      const one = yield* made(ask, "/v1/policies", policyOf(yield* targetOf(ask)))
      const path = `/v1/policies/${one.id}`
      const others = {
        share_id: share_a2,
        target_id: unknown_id,
        id: unknown_id,
        project_id: "other",
        created_at: "2020-01-01T00:00:00.000Z",
      }
      for (const [field, value] of Object.entries(others)) {
        const answer = yield* ask("PATCH", path, { [field]: value, name: "Not taken" })
        isRefused(answer, 400, "svc.field_immutable", field)
      }
      assert.deepEqual((yield* ask("GET", path)).body, one)
      assert.deepEqual((yield* ask("PATCH", path, one)).body, one)
    }),
  )
  served("400: a wrong schedule or zone, retention of nothing, an unknown field", (ask) =>
    Effect.gen(function* () {
      const { id } = yield* made(ask, "/v1/policies", policyOf(yield* targetOf(ask)))
      const wrong: ReadonlyArray<readonly [object, string]> = [
        [{ schedule: "x" }, "body.schedule"],
        [{ timezone: "Nowhere" }, "body.timezone"],
        [{ exclude_patterns: ["/a/[b/c]"] }, "body.exclude_patterns.0"],
        [{ retention: { keep_daily: 0 } }, "body.retention"],
        [{ colour: 1 }, "body.colour"],
        [{ max_retries: 11 }, "body.max_retries"],
      ]
      for (const [changes, detail] of wrong) {
        const answer = yield* ask("PATCH", `/v1/policies/${id}`, changes)
        isRefused(answer, 400, "svc.validation_error", detail)
      }
    }),
  )
  served("404: another project's, or none", (ask) =>
    Effect.gen(function* () {
      const { id } = yield* made(ask, "/v1/policies", policyOf(yield* targetOf(ask)))
      const theirs = yield* ask("PATCH", `/v1/policies/${id}`, { name: "x" }, tenant_b)
      isRefused(theirs, 404, "svc.not_found")
      isRefused(yield* ask("PATCH", "/v1/policies/x", { name: "x" }), 404, "svc.not_found")
    }),
  )
})

describe("DELETE /v1/policies/{id}", () => {
  served("204: deletes it, and keeps its finished backups", (ask) =>
    Effect.gen(function* () {
      const { backup_id, policy_id } = yield* backedUp(ask, { policy: true })
      const path = `/v1/backups/${backup_id}`
      assert.equal((yield* ask("GET", path)).body.policy_id, policy_id)
      const { status, text } = yield* ask("DELETE", `/v1/policies/${policy_id}`)
      assert.deepEqual([status, text], [204, ""])
      isRefused(yield* ask("GET", `/v1/policies/${policy_id}`), 404, "svc.not_found")
      assert.deepInclude((yield* ask("GET", path)).body, { policy_id: null, status: "available" })
      isRefused(yield* ask("DELETE", `/v1/policies/${policy_id}`), 404, "svc.not_found")
    }),
  )
  served("409: a backup of it is in progress; other backups do not block", (ask) =>
    Effect.gen(function* () {
      const target_id = yield* available(ask)
      const { id: policy_id } = yield* made(ask, "/v1/policies", policyOf(target_id))
      const { job } = yield* made(ask, "/v1/backups", { share_id: share_a, target_id, policy_id })
      const path = `/v1/policies/${policy_id}`
      isRefused(yield* ask("DELETE", path), 409, "svc.policy_has_inflight_backup")
      yield* run(job.id, 2)
      yield* made(ask, "/v1/backups", { share_id: share_a, target_id })
      assert.equal((yield* ask("DELETE", path)).status, 204)
    }),
  )
  served("404: another project's, which is unchanged", (ask) =>
    Effect.gen(function* () {
      const { id } = yield* made(ask, "/v1/policies", policyOf(yield* targetOf(ask)))
      const path = `/v1/policies/${id}`
      isRefused(yield* ask("DELETE", path, undefined, tenant_b), 404, "svc.not_found")
      assert.equal((yield* ask("GET", path)).status, 200)
    }),
  )
  served("503: the log is unavailable, and the policy is unchanged", (ask) =>
    Effect.gen(function* () {
      const { id } = yield* made(ask, "/v1/policies", policyOf(yield* targetOf(ask)))
      const outage = yield* Outage
      outage.down = true
      isRefused(yield* ask("DELETE", `/v1/policies/${id}`), 503, "svc.backend_unavailable")
      outage.down = false
      assert.equal((yield* ask("GET", `/v1/policies/${id}`)).status, 200)
    }),
  )
})

describe("policies in Shape B", () => {
  const rest = Struct.omit(policyOf(""), ["target_id"])
  const templated = (ask: Client, more: object = {}) =>
    Effect.map(made(ask, "/v1/target-templates", { ...template, ...more }, "owner"), ({ id }) => ({
      ...rest,
      target_template_id: String(id),
    }))
  served(
    "name a template of the project's domain",
    (ask) =>
      Effect.gen(function* () {
        const policy = yield* templated(ask)
        const { status, body } = yield* ask("POST", "/v1/policies", policy)
        assert.equal(status, 201)
        assert.deepInclude(body, policy)
        assert.notProperty(body, "target_id")
        const { body: all } = yield* ask("GET", "/v1/policies")
        assert.deepEqual(all.items, [body])
        const changed = yield* ask("PATCH", `/v1/policies/${body.id}`, { name: "New" })
        assert.equal(changed.body.name, "New")
        const other = { target_template_id: unknown_id }
        const answer = yield* ask("PATCH", `/v1/policies/${body.id}`, other)
        isRefused(answer, 400, "svc.field_immutable", "target_template_id")
      }),
    { shape: "B" },
  )
  served(
    "use the template's retention if they have none",
    (ask) =>
      Effect.gen(function* () {
        const bare = Struct.omit(yield* templated(ask), ["retention"])
        const none = yield* ask("POST", "/v1/policies", bare)
        isRefused(none, 400, "svc.validation_error", "body.retention")
        const given = yield* templated(ask, { default_retention: { keep_weekly: 5 } })
        const request = Struct.omit(given, ["retention"])
        const { retention } = yield* made(ask, "/v1/policies", request)
        assert.deepEqual(retention, { keep_weekly: 5 })
      }),
    { shape: "B" },
  )
  served(
    "400: a missing template, or one of another domain; a target",
    (ask) =>
      Effect.gen(function* () {
        const foreign = yield* made(ask, "/v1/target-templates", template, "other_owner")
        for (const target_template_id of [foreign.id, unknown_id]) {
          const answer = yield* ask("POST", "/v1/policies", { ...rest, target_template_id })
          isRefused(answer, 400, "svc.validation_error", "body.target_template_id")
        }
        const answer = yield* ask("POST", "/v1/policies", policyOf(unknown_id))
        isRefused(answer, 400, "svc.validation_error")
        isRefused(yield* ask("POST", "/v1/policies", rest, owner), 403, "svc.forbidden")
      }),
    { shape: "B" },
  )
})
