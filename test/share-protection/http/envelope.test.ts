import { assert, describe } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { it } from "vitest"
import { share_protection } from "#gateway/envelope.ts"
import { Rejection } from "#schemas/share-protection/rejection.ts"
import { Outage } from "../../world/log/frail-log.ts"
import { bucket, made, policyOf, unknown_id } from "../../world/share-protection/http/given.ts"
import { World } from "../../world/share-protection/http/ports.ts"
import { isRefused, logged, served } from "../../world/share-protection/http/served.ts"

interface Row {
  readonly code: string
  readonly title: string
  readonly category: string
  readonly status: number
}

/** Document 2 §7: the stable list. */
const documented: ReadonlyArray<readonly [string, number, "tenant" | "operator"]> = [
  ["svc.validation_error", 400, "tenant"],
  ["svc.field_immutable", 400, "tenant"],
  ["svc.unauthorized", 401, "tenant"],
  ["svc.forbidden", 403, "tenant"],
  ["svc.quota_exceeded", 403, "tenant"],
  ["svc.trust_access_denied", 403, "tenant"],
  ["svc.not_found", 404, "tenant"],
  ["svc.method_not_allowed", 405, "tenant"],
  ["svc.conflict", 409, "tenant"],
  ["svc.force_required", 409, "tenant"],
  ["svc.target_has_dependents", 409, "tenant"],
  ["svc.policy_has_inflight_backup", 409, "tenant"],
  ["svc.repository_locked", 409, "operator"],
  ["svc.target_preflight_failed", 422, "tenant"],
  ["svc.worker_unavailable", 503, "operator"],
  ["svc.backend_unavailable", 503, "operator"],
  ["svc.invalid_state_transition", 500, "operator"],
  ["svc.engine_error", 500, "operator"],
  ["svc.network_strategy_precondition", 500, "operator"],
  ["svc.snapshot_strategy_precondition", 500, "operator"],
  ["svc.internal_error", 500, "operator"],
]

const encode = Schema.encodeSync(Rejection)

/** The response of each class of rejection. */
const rows: ReadonlyArray<Row> = Rejection.members.map((Class) => {
  // Each class has its own fixed code; they share only the detail.
  const Made = Class as unknown as new (fields: { detail: string }) => typeof Rejection.Type
  // The encoded response is an object of these strings.
  const { code, title, category } = encode(new Made({ detail: "" })) as Omit<Row, "status">
  const status = Number(Reflect.get(Class.ast.annotations ?? {}, "httpApiStatus"))
  return { code, title, category, status }
})

describe("the rejections", () => {
  it("are exactly those of document 2's table", () => {
    const wanted = documented.map(
      ([code, status, who]) => `${code} ${status} ${who}_action_required`,
    )
    const previous = rows.map(({ code, status, category }) => `${code} ${status} ${category}`)
    assert.deepEqual(previous.toSorted(), wanted.toSorted())
  })

  it("have the titles that the front door words the same codes by", () => {
    const edge = { request_id: "r", error: undefined as never }
    for (const status of [400, 401, 403, 404, 405, 409, 500, 503]) {
      const body = share_protection.body({ status, detail: "" }, edge)
      const row = rows.find(({ code }) => code === body.code)
      const { title, category } = body
      assert.deepEqual([row?.status, row?.title, row?.category], [status, title, category])
    }
  })
})

describe("the envelope", () => {
  served("of a rejection: code, title, detail, category", (ask) =>
    Effect.gen(function* () {
      const { headers, body } = yield* ask("GET", `/v1/targets/${unknown_id}`)
      assert.deepEqual(body, {
        code: "svc.not_found",
        title: "Not found",
        detail: "No such target.",
        category: "tenant_action_required",
      })
      const request_id = headers.get("x-request-id")
      assert.equal(headers.get("x-openstack-request-id"), `req-${request_id}`)
    }),
  )
  for (const [what, method, path, body, status, code] of [
    ["malformed JSON", "POST", "/v1/targets", "{", 400, "svc.validation_error"],
    ["a body that is no object", "POST", "/v1/targets", "7", 400, "svc.validation_error"],
    ["a missing body", "PATCH", "/v1/policies/x", undefined, 400, "svc.validation_error"],
    ["an unknown path", "GET", "/v1/nothing", undefined, 404, "svc.not_found"],
    ["a path below one that there is", "GET", "/v1/targets/a/b/c", undefined, 404, "svc.not_found"],
    ["another method", "PUT", "/v1/targets", {}, 405, "svc.method_not_allowed"],
    ["a malformed escape", "GET", "/v1/targets/%E0%A4", undefined, 400, "svc.validation_error"],
  ] as const) {
    served(`of ${what} is ${status}`, (ask) =>
      Effect.gen(function* () {
        isRefused(yield* ask(method, path, body), status, code)
      }),
    )
  }
  served("415: a body that is not JSON", (ask) =>
    Effect.gen(function* () {
      const headers = { "content-type": "text/plain" }
      const answer = yield* ask("POST", "/v1/targets", JSON.stringify(bucket), { headers })
      isRefused(answer, 415, "svc.validation_error")
    }),
  )
  served("413: a body that exceeds the size limit", (ask) =>
    Effect.gen(function* () {
      const answer = yield* ask("POST", "/v1/targets", { ...bucket, name: "x".repeat(65_536) })
      isRefused(answer, 413, "svc.validation_error")
    }),
  )
  served("names the invalid fields and their locations", (ask) =>
    Effect.gen(function* () {
      const { body } = yield* ask("POST", "/v1/targets", { name: 1, bucket: "B" })
      for (const field of ["body.name", "body.endpoint"]) assert.include(body.detail, field)
    }),
  )
  served("500: the response to a defect reveals nothing of it", (ask) =>
    Effect.gen(function* () {
      const { target } = yield* made(ask, "/v1/targets", bucket)
      const world = yield* World
      world.shares = null as never
      const { headers, body, status } = yield* ask("POST", "/v1/policies", policyOf(target.id))
      assert.equal(status, 500)
      assert.deepEqual(body, {
        code: "svc.internal_error",
        title: "Internal error",
        detail: "",
        category: "operator_action_required",
      })
      const request_id = headers.get("x-request-id") ?? "none"
      const line = logged.find((line) => line.includes(request_id)) ?? ""
      assert.include(line, "TypeError")
    }),
  )
  served("503 of the log has Retry-After", (ask) =>
    Effect.gen(function* () {
      const { target } = yield* made(ask, "/v1/targets", bucket)
      ;(yield* Outage).down = true
      const path = `/v1/targets/${target.id}`
      assert.equal((yield* ask("GET", path)).status, 200)
      isRefused(yield* ask("DELETE", path), 503, "svc.backend_unavailable")
      isRefused(yield* ask("PATCH", path, { name: "x" }), 503, "svc.backend_unavailable")
    }),
  )
})
