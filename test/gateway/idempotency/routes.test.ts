/** The effect of an `Idempotency-Key` on each request that is not a read. Source: decision 0181. */
import { assert, describe, it } from "@effect/vitest"
import { Context } from "effect"
import { HttpApi } from "effect/http-api"
import { KeyNotNeeded } from "#gateway/limits.ts"
import { served } from "#gateway/share-protection/routes.ts"
import { shape_a } from "#gateway/share-protection/shapes/shape-a.ts"
import { shape_b } from "#gateway/share-protection/shapes/shape-b.ts"
import { apisOf } from "../../world/every-api.ts"

/**
 * `log`: the request sends a command, and the log deduplicates it by id. `derived`: its result is
 * derived from the command's id. `noted`: its change stores the command's id. `none`: it needs no
 * key, and the OpenAPI document says why.
 */
type Counts = "log" | "derived" | "noted" | "none"

const webhooks = (path: string): Readonly<Record<string, Counts>> => ({
  [`POST ${path}`]: "log",
  [`PATCH ${path}/:id`]: "log",
  [`DELETE ${path}/:id`]: "log",
  [`POST ${path}/:id/secret`]: "log",
  [`POST ${path}/:id/test`]: "none",
  [`POST ${path}/:id/replay`]: "log",
  [`POST ${path}/:id/dead-letters/redeliver`]: "log",
  [`POST ${path}/:id/dead-letters/:sequence/redeliver`]: "log",
})

/** Every request that is not a read. A new one declares here how it uses a key. */
const expected: Readonly<Record<string, Counts>> = {
  "PUT /v1/blobs": "none",
  "POST /v1/blobs/stream": "none",
  "POST /v1/blobs/stat": "none",
  "POST /v1/blobs/get": "none",
  "DELETE /v1/blobs/:id": "none",
  "POST /v1/cluster/join": "log",
  "POST /v1/cluster/leave": "log",
  "POST /v1/cluster/heartbeat": "none",
  "POST /v1/cluster/sync-ring": "none",
  "POST /v1/cluster/compact": "none",
  "POST /predict": "none",
  "POST /predict/batch": "none",
  "POST /v2/models/:name/infer": "none",
  "POST /v1/targets": "log",
  "PATCH /v1/targets/:id": "log",
  "DELETE /v1/targets/:id": "log",
  "POST /v1/targets/:id/enroll": "log",
  "POST /v1/target-templates": "log",
  "PATCH /v1/target-templates/:id": "log",
  "DELETE /v1/target-templates/:id": "log",
  "POST /v1/policies": "log",
  "PATCH /v1/policies/:id": "log",
  "DELETE /v1/policies/:id": "log",
  "POST /v1/policies/:id/retention-preview": "none",
  "POST /v1/backups": "log",
  "POST /v1/backups/:id/undelete": "log",
  "DELETE /v1/backups/:id": "log",
  "POST /v1/restores": "log",
  "POST /v1/jobs/:id/cancel": "log",
  "POST /v1/admin/jobs/:id/retry": "log",
  "POST /v1/admin/jobs/:id/cancel": "log",
  "POST /v1/admin/targets/:id/repo-format-upgrade": "log",
  "PATCH /v1/admin/domains/:domain_id": "log",
  "POST /v1/admin/workers/:id/drain": "log",
  "POST /v1/admin/workers/:id/retire": "log",
  "POST /v1/admin/rollouts": "log",
  "POST /v1/admin/scheduling/pause": "log",
  "POST /v1/admin/scheduling/resume": "log",
  "POST /v1/admin/reconciliation/trigger": "log",
  "POST /v1/events/tickets": "none",
  "POST /v1/admin/read-models/:name/rebuild": "none",
  "POST /v1/admin/read-models/:name/difference": "none",
  "POST /v1/admin/tokens": "derived",
  "POST /v1/admin/tokens/:name/revoke": "noted",
  "POST /v1/admin/secrets": "derived",
  "POST /v1/admin/trusts": "derived",
  "POST /v1/admin/trusts/:trust_id/revoke": "noted",
  ...webhooks("/v1/webhooks"),
  ...webhooks("/v1/admin/webhooks"),
}

const apis = [...apisOf(shape_a), served(shape_b).api]

/** Why a request needs no key, by method and path; undefined if it uses the key. */
const routes = new Map<string, string | undefined>()
for (const api of apis) {
  // Every HttpApi has the properties of `Top`; the library erases their types in the same way.
  HttpApi.reflect(api as HttpApi.Constraint as HttpApi.Top, {
    onGroup: () => undefined,
    onEndpoint: ({ endpoint: { method, path }, mergedAnnotations }) => {
      if (method === "GET") return
      routes.set(`${method} ${path}`, Context.get(mergedAnnotations, KeyNotNeeded))
    },
  })
}

describe("an Idempotency-Key", () => {
  it("is declared for every request except reads", () => {
    assert.sameMembers([...routes.keys()], Object.keys(expected))
  })

  it.each(Object.entries(expected))("of %s is %s in the document too", (route, counts) => {
    assert.equal(routes.get(route) !== undefined, counts === "none")
  })
})
