import { assert, describe } from "@effect/vitest"
import { Effect, Struct } from "effect"
import {
  admin,
  bucketOf,
  made,
  owner,
  policyOf,
  template,
  unknown_id,
} from "../../world/share-protection/http/given.ts"
import { domain_id } from "../../world/share-protection/http/ports.ts"
import {
  type Client,
  isRefused,
  type Services,
  served,
} from "../../world/share-protection/http/served.ts"
import { secretRef } from "../../world/share-protection/samples.ts"

const other_owner = { token: "other_owner" }

const servedB = (name: string, body: (ask: Client) => Effect.Effect<void, unknown, Services>) =>
  served(name, body, { shape: "B" })

const path = "/v1/target-templates"

describe("POST /v1/target-templates", () => {
  servedB("201: a template of the owner's domain", (ask) =>
    Effect.gen(function* () {
      const { status, headers, body } = yield* ask("POST", path, template, owner)
      assert.equal(status, 201)
      assert.deepEqual(body, {
        id: body.id,
        ...template,
        domain_id,
        region: null,
        provider: null,
        addressing_mode: "path",
        ca_cert_ref: null,
        default_retention: null,
        created_at: body.created_at,
        updated_at: body.created_at,
      })
      assert.match(headers.get("x-almanac-position") ?? "", /^\d+$/)
      assert.deepEqual((yield* ask("GET", `${path}/${body.id}`, undefined, owner)).body, body)
    }),
  )
  servedB("201: with all its fields", (ask) =>
    Effect.gen(function* () {
      const fields = {
        ...template,
        region: "north",
        provider: "ceph",
        addressing_mode: "virtual",
        ca_cert_ref: secretRef(9),
        default_retention: { keep_last: 7 },
        domain_id,
      }
      const { body } = yield* ask("POST", path, fields, owner)
      assert.deepInclude(body, fields)
    }),
  )
  const { name, endpoint, ...rest } = template
  const wrong: ReadonlyArray<readonly [string, unknown, string]> = [
    ["without a name", { endpoint, ...rest }, "body.name"],
    ["without an endpoint", { name, ...rest }, "body.endpoint"],
    ["without a bucket scheme", { name, endpoint }, "body.bucket_scheme"],
    ["with another scheme", { ...template, bucket_scheme: "one" }, "body.bucket_scheme"],
    ["with an unknown field", { ...template, colour: 1 }, "body.colour"],
    ["with another domain", { ...template, domain_id: "other" }, "body.domain_id"],
    ["with a retention of nothing", { ...template, default_retention: { keep_last: 0 } }, "keep"],
  ]
  for (const [how, body, detail] of wrong) {
    servedB(`400: a body ${how}`, (ask) =>
      Effect.gen(function* () {
        const answer = yield* ask("POST", path, body, owner)
        isRefused(answer, 400, "svc.validation_error", detail)
      }),
    )
  }
  servedB("403: without the role on the domain", (ask) =>
    Effect.gen(function* () {
      isRefused(yield* ask("POST", path, template), 403, "svc.forbidden")
    }),
  )
})

describe("GET /v1/target-templates", () => {
  servedB("200: those of the domain, for its owner and its projects", (ask) =>
    Effect.gen(function* () {
      const one = yield* made(ask, path, template, "owner")
      const two = yield* made(ask, path, { ...template, name: "Two" }, "owner")
      const foreign = yield* made(ask, path, template, "other_owner")
      const wanted = {
        items: [one, two],
        pagination: { limit: 100, count: 2, next_marker: null },
      }
      assert.deepEqual((yield* ask("GET", path, undefined, owner)).body, wanted)
      assert.deepEqual((yield* ask("GET", path)).body, wanted)
      const answer = yield* ask("GET", `${path}/${foreign.id}`, undefined, owner)
      isRefused(answer, 404, "svc.not_found")
      isRefused(yield* ask("GET", `${path}/${unknown_id}`), 404, "svc.not_found")
      const all = yield* ask("GET", "/v1/admin/target-templates", undefined, admin)
      assert.deepEqual(all.body.items, [one, two, foreign])
    }),
  )
})

describe("PATCH /v1/target-templates/{id}", () => {
  servedB("200: name and default retention change", (ask) =>
    Effect.gen(function* () {
      const one = yield* made(ask, path, template, "owner")
      const changes = { name: "Other", default_retention: { keep_daily: 7 } }
      const { status, body } = yield* ask("PATCH", `${path}/${one.id}`, changes, owner)
      assert.equal(status, 200)
      assert.deepEqual(body, { ...one, ...changes, updated_at: body.updated_at })
      assert.deepEqual((yield* ask("PATCH", `${path}/${one.id}`, body, owner)).body, body)
    }),
  )
  servedB("400: the bucket scheme and the other fields are immutable", (ask) =>
    Effect.gen(function* () {
      const one = yield* made(ask, path, template, "owner")
      const patch = (body: object) => ask("PATCH", `${path}/${one.id}`, body, owner)
      const shared = yield* patch({ bucket_scheme: "shared" })
      isRefused(shared, 400, "svc.field_immutable", "bucket_scheme")
      isRefused(yield* patch({ endpoint: "http://other" }), 400, "svc.field_immutable", "endpoint")
      isRefused(yield* patch({ colour: 1 }), 400, "svc.validation_error", "colour")
    }),
  )
  servedB("404: another domain's", (ask) =>
    Effect.gen(function* () {
      const one = yield* made(ask, path, template, "owner")
      const answer = yield* ask("PATCH", `${path}/${one.id}`, { name: "Mine" }, other_owner)
      isRefused(answer, 404, "svc.not_found")
    }),
  )
})

describe("DELETE /v1/target-templates/{id}", () => {
  servedB("204: deletes it", (ask) =>
    Effect.gen(function* () {
      const { id } = yield* made(ask, path, template, "owner")
      assert.equal((yield* ask("DELETE", `${path}/${id}`, undefined, owner)).status, 204)
      isRefused(yield* ask("GET", `${path}/${id}`, undefined, owner), 404, "svc.not_found")
      const again = yield* ask("DELETE", `${path}/${id}`, undefined, owner)
      isRefused(again, 404, "svc.not_found")
    }),
  )
  servedB("409: a bucket, or a policy, references it", (ask) =>
    Effect.gen(function* () {
      const { id } = yield* made(ask, path, template, "owner")
      const target = yield* made(ask, "/v1/targets", bucketOf(id), "owner")
      const gone = ask("DELETE", `${path}/${id}`, undefined, owner)
      isRefused(yield* gone, 409, "svc.target_has_dependents")
      yield* ask("DELETE", `/v1/targets/${target.id}`, undefined, owner)
      const policy = Struct.omit(policyOf(id), ["target_id"])
      const { id: policy_id } = yield* made(ask, "/v1/policies", {
        ...policy,
        target_template_id: id,
      })
      isRefused(yield* gone, 409, "svc.target_has_dependents")
      yield* ask("DELETE", `/v1/policies/${policy_id}`)
      assert.equal((yield* gone).status, 204)
    }),
  )
})

describe("in Shape A", () => {
  for (const [method, url] of [
    ["GET", path],
    ["POST", path],
    ["GET", `${path}/${unknown_id}`],
    ["PATCH", `${path}/${unknown_id}`],
    ["DELETE", `${path}/${unknown_id}`],
    ["GET", "/v1/admin/target-templates"],
  ] as const) {
    served(`404: ${method} ${url}`, (ask) =>
      Effect.gen(function* () {
        const body = method === "POST" || method === "PATCH" ? template : undefined
        isRefused(yield* ask(method, url, body, admin), 404, "svc.not_found")
      }),
    )
  }
})
