import { assert, describe } from "@effect/vitest"
import { Context, Effect, Struct } from "effect"
import { HttpApi } from "effect/http-api"
import { it } from "vitest"
import { type Access, Needs } from "#gateway/access.ts"
import { defaultRules } from "#gateway/share-protection/default-rules.ts"
import { served as servedOf } from "#gateway/share-protection/routes.ts"
import { shape_a } from "#gateway/share-protection/shapes/shape-a.ts"
import { shape_b } from "#gateway/share-protection/shapes/shape-b.ts"
import {
  backedUp,
  bucketOf,
  made,
  policyOf,
  template,
  unknown_id,
} from "../../world/share-protection/http/given.ts"
import { share_a } from "../../world/share-protection/http/ports.ts"
import { type Client, isRefused, served } from "../../world/share-protection/http/served.ts"

interface Endpoint {
  readonly method: string
  readonly path: string
  readonly access: Access
}

/** Every endpoint of a shape, as the HTTP layer defines it. */
const endpointsOf = (shape: "A" | "B") => {
  const endpoints: Array<Endpoint> = []
  const { api } = servedOf(shape === "A" ? shape_a : shape_b)
  // Every HttpApi has these properties; the library erases their types.
  HttpApi.reflect(api as HttpApi.Constraint as HttpApi.Top, {
    onGroup: () => undefined,
    onEndpoint: ({ endpoint: { method, path }, mergedAnnotations }) => {
      endpoints.push({ method, path, access: Context.get(mergedAnnotations, Needs) })
    },
  })
  return endpoints
}

const nameOf = ({ method, path }: Endpoint) => `${method} ${path}`

/** The two tables of document 2, and the additions in DECISIONS. */
const documented = [
  "GET /v1/service_info",
  "GET /v1/targets",
  "POST /v1/targets",
  "GET /v1/targets/:id",
  "PATCH /v1/targets/:id",
  "DELETE /v1/targets/:id",
  "GET /v1/targets/:id/preflight",
  "POST /v1/targets/:id/enroll",
  "GET /v1/policies",
  "POST /v1/policies",
  "GET /v1/policies/:id",
  "PATCH /v1/policies/:id",
  "DELETE /v1/policies/:id",
  "GET /v1/backups",
  "POST /v1/backups",
  "GET /v1/backups/:id",
  "DELETE /v1/backups/:id",
  "POST /v1/backups/:id/undelete",
  "POST /v1/policies/:id/retention-preview",
  "GET /v1/restores",
  "POST /v1/restores",
  "GET /v1/restores/:id",
  "GET /v1/jobs",
  "GET /v1/jobs/:id",
  "POST /v1/jobs/:id/cancel",
  "GET /v1/usage",
  "GET /v1/admin/workers",
  "POST /v1/admin/workers/:id/drain",
  "POST /v1/admin/workers/:id/retire",
  "GET /v1/admin/jobs",
  "GET /v1/admin/jobs/:id",
  "POST /v1/admin/jobs/:id/retry",
  "POST /v1/admin/jobs/:id/cancel",
  "GET /v1/admin/coverage",
  "GET /v1/admin/targets",
  "GET /v1/admin/scheduling",
  "POST /v1/admin/scheduling/pause",
  "POST /v1/admin/scheduling/resume",
  "GET /v1/admin/reconciliation",
  "POST /v1/admin/reconciliation/trigger",
  "POST /v1/admin/targets/:id/repo-format-upgrade",
  "GET /v1/admin/system/health",
  "GET /v1/admin/domains/:domain_id",
  "PATCH /v1/admin/domains/:domain_id",
  "GET /v1/admin/rollouts",
  "POST /v1/admin/rollouts",
  "GET /v1/admin/rollouts/:id",
]
const documented_in_b = [
  "GET /v1/target-templates",
  "POST /v1/target-templates",
  "GET /v1/target-templates/:id",
  "PATCH /v1/target-templates/:id",
  "DELETE /v1/target-templates/:id",
  "GET /v1/admin/target-templates",
]

describe.each(["A", "B"] as const)("Shape %s", (shape) => {
  const endpoints = endpointsOf(shape)
  const closed = endpoints.filter(({ access }) => access !== "public")

  it("has every path of the documents, and no other", () => {
    const wanted = shape === "A" ? documented : [...documented, ...documented_in_b]
    assert.deepEqual(endpoints.map(nameOf).toSorted(), wanted.toSorted())
  })

  it("checks a rule of the table for each endpoint except service_info", () => {
    const rules = defaultRules(shape)
    const open = endpoints.filter(({ access }) => access === "public").map(nameOf)
    assert.deepEqual(open, ["GET /v1/service_info"])
    const names = closed.map(({ access }) =>
      typeof access === "object" && "rule" in access ? access.rule : "none",
    )
    for (const name of names) assert.property(rules, name)
    assert.equal(new Set(names).size, names.length)
    const unused = Object.keys(rules).filter(
      (name) => name.split(":").length > 2 && !names.includes(name),
    )
    const in_a = (name: string) => shape === "B" || !name.includes("target_templates")
    assert.deepEqual(unused.filter(in_a), [])
  })

  const at = ({ path }: Endpoint) => path.replace(/:\w+/, unknown_id)
  const bodyOf = ({ method }: Endpoint) =>
    method === "POST" || method === "PATCH" ? {} : undefined

  served(
    "401: every endpoint without a token, or with an unknown one",
    (ask) =>
      Effect.gen(function* () {
        for (const endpoint of closed) {
          for (const token of ["", "nobody"]) {
            const { method } = endpoint
            const answer = yield* ask(method, at(endpoint), bodyOf(endpoint), { token })
            isRefused(answer, 401, "svc.unauthorized")
            assert.isNotNull(answer.headers.get("www-authenticate"), nameOf(endpoint))
          }
        }
      }),
    { shape },
  )
  served(
    "403: every endpoint without a role on its scope",
    (ask) =>
      Effect.gen(function* () {
        for (const endpoint of closed) {
          const { method } = endpoint
          const answer = yield* ask(method, at(endpoint), bodyOf(endpoint), { token: "reader" })
          isRefused(answer, 403, "svc.forbidden")
        }
      }),
    { shape },
  )
  served(
    "403: every operator's endpoint for a tenant and for a domain's owner",
    (ask) =>
      Effect.gen(function* () {
        const operators = closed.filter(({ path }) => path.startsWith("/v1/admin/"))
        assert.isAtLeast(operators.length, 18)
        for (const endpoint of operators) {
          for (const token of ["tenant", "owner"]) {
            const { method } = endpoint
            const answer = yield* ask(method, at(endpoint), bodyOf(endpoint), { token })
            isRefused(answer, 403, "svc.forbidden")
          }
        }
      }),
    { shape },
  )
})

const walkForeign = Effect.fnUntraced(function* (
  ask: Client,
  shape: "A" | "B",
  ids: Readonly<Record<string, string>>,
  tokens: ReadonlyArray<string>,
) {
  const tenants = endpointsOf(shape).filter(
    ({ path }) => path.includes(":id") && !path.startsWith("/v1/admin/"),
  )
  for (const endpoint of tenants) {
    const { method, path } = endpoint
    const noun = path.split("/")[2] ?? ""
    const id = ids[noun]
    if (id === undefined) throw new Error(`There is no id for ${path}.`)
    const preview = path.endsWith("/retention-preview")
      ? { retention: { keep_last: 1 } }
      : undefined
    const body = method === "PATCH" ? { name: "Mine" } : preview
    // Templates are visible to every project of their domain.
    const strangers = noun === "target-templates" ? ["other_owner"] : tokens
    for (const token of strangers) {
      const answer = yield* ask(method, path.replace(":id", id), body, { token })
      // A rule rejects callers without the role before the lookup.
      if (answer.status !== 403) isRefused(answer, 404, "svc.not_found")
      else isRefused(answer, 403, "svc.forbidden")
      if (token === "tenant_b" && shape === "A") assert.equal(answer.status, 404, nameOf(endpoint))
    }
  }
  return tenants.length
})

describe("another project's resource", () => {
  served("404: on every path of Shape A that has one, which stays unchanged", (ask) =>
    Effect.gen(function* () {
      const { target_id, policy_id, backup_id, job_id } = yield* backedUp(ask, { policy: true })
      const { restore } = yield* made(ask, "/v1/restores", { backup_id })
      const ids = {
        targets: target_id,
        policies: policy_id ?? "",
        backups: backup_id,
        restores: restore.id,
        jobs: job_id,
      }
      const found = Effect.forEach(Object.entries(ids), ([noun, id]) =>
        Effect.map(ask("GET", `/v1/${noun}/${id}`), ({ text }) => text),
      )
      const before = yield* found
      const tokens = ["tenant_b", "admin", "owner", "other_owner"]
      assert.equal(yield* walkForeign(ask, "A", ids, tokens), 15)
      assert.deepEqual(yield* found, before)
    }),
  )
  served(
    "404: on every path of Shape B that names one",
    (ask) =>
      Effect.gen(function* () {
        const { id } = yield* made(ask, "/v1/target-templates", template, "owner")
        const target = yield* made(ask, "/v1/targets", bucketOf(String(id)), "owner")
        const policy = Struct.omit(policyOf(""), ["target_id"])
        const body = { ...policy, target_template_id: id }
        const { id: policy_id } = yield* made(ask, "/v1/policies", body)
        const backup = yield* made(ask, "/v1/backups", { share_id: share_a, policy_id })
        const ids = {
          "target-templates": String(id),
          targets: target.id,
          policies: String(policy_id),
          backups: backup.id,
          restores: unknown_id,
          jobs: backup.job_id,
        }
        assert.equal(yield* walkForeign(ask, "B", ids, ["tenant_b", "other_owner"]), 18)
        assert.equal((yield* ask("GET", `/v1/backups/${backup.id}`)).body.status, "creating")
      }),
    { shape: "B" },
  )
})

describe("methods", () => {
  served("405: an unsupported method, with the supported ones", (ask) =>
    Effect.gen(function* () {
      const paths = new Map<string, Set<string>>()
      for (const { method, path } of endpointsOf("A")) {
        paths.set(path, (paths.get(path) ?? new Set()).add(method))
      }
      for (const [path, methods] of paths) {
        for (const method of ["GET", "POST", "PUT", "PATCH", "DELETE"]) {
          if (methods.has(method)) continue
          const answer = yield* ask(method, path.replace(/:\w+/, unknown_id))
          isRefused(answer, 405, "svc.method_not_allowed")
          const allow = new Set((answer.headers.get("allow") ?? "").split(", "))
          for (const has of methods) assert.isTrue(allow.has(has), `${path} ${has}`)
        }
      }
    }),
  )
})
