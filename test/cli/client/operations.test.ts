/** The command line covers the whole API: checked against the OpenAPI document of both shapes. */
import { assert, describe, it } from "@effect/vitest"
import { OpenApi } from "effect/http-api"
import { blobs } from "#cli/client/blob-storage/blob.ts"
import { cluster } from "#cli/client/blob-storage/cluster.ts"
import { readings } from "#cli/client/capital-pressure/reading.ts"
import { carriers } from "#cli/client/carrier-search/carrier.ts"
import { notFoundAdvice } from "#cli/client/not-found.ts"
import {
  argumentsOf,
  type CommandGroup,
  type Field,
  flagOf,
  needOf,
  type Operation,
} from "#cli/client/operation.ts"
import { predict } from "#cli/client/plant-disease/prediction.ts"
import { backups } from "#cli/client/share-protection/backup.ts"
import {
  coverage,
  domains,
  reconciliation,
  rollouts,
  scheduling,
  service,
  usage,
  workers,
} from "#cli/client/share-protection/fleet.ts"
import { jobs } from "#cli/client/share-protection/job.ts"
import { policies } from "#cli/client/share-protection/policy.ts"
import { restores } from "#cli/client/share-protection/restore.ts"
import { targets } from "#cli/client/share-protection/target.ts"
import { templates } from "#cli/client/share-protection/target-template.ts"
import { audit, readModels } from "#cli/client/system/audit.ts"
import { events } from "#cli/client/system/events.ts"
import { webhooks } from "#cli/client/system/webhook.ts"
import { shape_a } from "#gateway/share-protection/shapes/shape-a.ts"
import { shape_b } from "#gateway/share-protection/shapes/shape-b.ts"
import { documented } from "#gateway/system/document.ts"
import { apisOf } from "../../world/every-api.ts"

const nouns: ReadonlyArray<CommandGroup> = [
  targets,
  templates,
  policies,
  backups,
  restores,
  jobs,
  usage,
  service,
  workers,
  rollouts,
  domains,
  coverage,
  scheduling,
  reconciliation,
  readModels,
  blobs,
  cluster,
  readings,
  carriers,
  predict,
  events,
  audit,
  webhooks,
]

/** Operations that intentionally have no command over HTTP. */
const without: Readonly<Record<string, string>> = {
  "PUT /v1/blobs": "blobs put sends bytes as they are, POST /v1/blobs/stream",
  "GET /v1/blobs/{id}/stream": "blobs get asks for bytes as they are, with Range",
  "POST /v1/blobs/get": "many small blobs in one answer: for programs",
  "POST /v1/cluster/heartbeat": "a node's own",
  "POST /predict/batch": "predict takes several files",
  "POST /v1/admin/tokens": "token issue, on the server's machine",
  "POST /v1/admin/tokens/{name}/revoke": "token revoke, on the server's machine",
  "POST /v1/admin/secrets": "secret put, on the server's machine",
  "POST /v1/admin/trusts": "trust create, on the server's machine",
  "POST /v1/admin/trusts/{trust_id}/revoke": "trust revoke, on the server's machine",
  "GET /v1/admin/audit/export": "audit export, on the server's machine",
  "GET /v1/admin/audit/head": "audit head, on the server's machine",
  "GET /v1/admin/audit/key": "audit key, on the server's machine",
  "GET /v1/admin/charts": "the console draws them; docs/lifecycles.md has them too",
}
/** Pages, documents, probes, and a protocol that has its own clients. */
const for_others = [
  /^GET \/(carriers|plants|console|docs|livez|readyz|metrics|health|assets\/.+)?$/,
  /^GET \/(console|assets)\/.*$/,
  /^GET (\/v1)?\/(openapi|asyncapi)\.json$/,
  /^(GET|POST) \/v2\b/,
  // Identical to /v1/webhooks.
  /^[A-Z]+ \/v1\/admin\/webhooks\b/,
]

interface Parameter {
  readonly in: string
  readonly name: string
  readonly required?: boolean
}
interface Schema {
  readonly $ref?: string
  readonly type?: string
  readonly properties?: Readonly<Record<string, Schema>>
  readonly required?: ReadonlyArray<string>
  readonly anyOf?: ReadonlyArray<Schema>
  readonly readOnly?: boolean
}
interface Documented {
  readonly parameters?: ReadonlyArray<Parameter>
  readonly requestBody?: { readonly content: Readonly<Record<string, { readonly schema: Schema }>> }
}

const documentOf = (shape: typeof shape_a) => {
  const { paths, components } = OpenApi.fromApi(documented(apisOf(shape)))
  // The library's own document: operations by path and method, schemas by name.
  const all = paths as unknown as Record<string, Record<string, Documented>>
  const schemas = components.schemas as unknown as Record<string, Schema>
  const operations = Object.entries(all).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, one]) => ({
      key: `${method.toUpperCase()} ${path}`,
      one,
    })),
  )
  return { operations: new Map(operations.map(({ key, one }) => [key, one])), schemas }
}

const shapes = [documentOf(shape_a), documentOf(shape_b)]
const known = new Set(shapes.flatMap(({ operations }) => [...operations.keys()]))

const keysOf = ({ method, path, for_operators }: Operation) => [
  `${method} ${path}`,
  ...(for_operators === undefined ? [] : [`${method} ${for_operators.path}`]),
]
const all = nouns.flatMap(({ name, operations }) =>
  operations.map((operation) => ({ name: `${name} ${operation.command}`, operation })),
)

/** Paths of all nested fields of a body, without read-only ones. */
const membersOf = (
  schema: Schema | undefined,
  schemas: Readonly<Record<string, Schema>>,
  before = "",
): ReadonlyArray<string> => {
  const { $ref, anyOf = [], properties } = schema ?? {}
  if ($ref !== undefined) {
    return membersOf(schemas[$ref.replace("#/components/schemas/", "")], schemas, before)
  }
  if (properties === undefined) {
    const parts = anyOf.flatMap((one) => membersOf(one, schemas, before))
    return parts.length > 0 ? [...new Set(parts)] : []
  }
  return Object.entries(properties).flatMap(([name, one]) => {
    if (one.readOnly === true) return []
    const inner = membersOf(one, schemas, `${before}${name}.`)
    return inner.length > 0 ? inner : [`${before}${name}`]
  })
}

const bodyOf = (key: string) =>
  shapes.flatMap(({ operations, schemas }) =>
    membersOf(operations.get(key)?.requestBody?.content["application/json"]?.schema, schemas),
  )
const queryOf = (key: string) =>
  shapes.flatMap(({ operations }) =>
    (operations.get(key)?.parameters ?? []).flatMap(({ in: where, name }) =>
      where === "query" ? [name] : [],
    ),
  )
const names = (fields: ReadonlyArray<Field> = []) => new Set(fields.map(({ name }) => name))
const paging = ["limit", "marker"]

describe("the command line over HTTP", () => {
  it("has a command for each operation of the API, or a reason for its absence", () => {
    const verbs = new Set([
      ...all.flatMap(({ operation }) => keysOf(operation)),
      ...nouns.flatMap(({ covered = [] }) =>
        covered.map(({ method, path }) => `${method} ${path}`),
      ),
    ])
    const left = [...known].filter(
      (key) => !verbs.has(key) && !(key in without) && !for_others.some((one) => one.test(key)),
    )
    assert.deepEqual(left, [], "add a command in client/, or a reason in this test")
    assert.deepEqual(
      [...verbs].filter((key) => !known.has(key)),
      [],
      "the API has no such thing",
    )
    assert.deepEqual(
      Object.keys(without).filter((key) => verbs.has(key) || !known.has(key)),
      [],
    )
    assert.isAbove(verbs.size, 60)
  })

  it.each(all)("$name has a flag for each parameter, and no other", ({ operation }) => {
    const { query, body, for_operators, is_paged } = operation
    const given = [...names(query), ...names(for_operators?.query)]
    const requests = keysOf(operation).flatMap(queryOf)
    const unpaged = requests.filter((one) => !paging.includes(one))
    assert.sameMembers([...new Set(unpaged)], [...new Set(given)], "query")
    assert.equal(requests.includes("marker"), is_paged === true, "pages")
    const members = new Set(keysOf(operation).flatMap(bodyOf))
    assert.sameMembers([...members], [...names(body)], "body")
  })

  it.each(nouns)("$name: its own commands' operations are documented", ({ covered = [] }) => {
    for (const { method, path, query = [] } of covered) {
      assert.includeMembers(queryOf(`${method} ${path}`), [...query], `${method} ${path}`)
    }
  })

  it.each(all)("$name insists on nothing that the server does not", ({ operation }) => {
    const { method, path, body = [], query = [] } = operation
    for (const { operations, schemas } of shapes) {
      const one = operations.get(`${method} ${path}`)
      if (one === undefined) continue
      const schema = one.requestBody?.content["application/json"]?.schema
      const { $ref } = schema ?? {}
      const named = $ref === undefined ? schema : schemas[$ref.split("/").at(-1) ?? ""]
      for (const { name, required_in = [] } of body) {
        if (required_in.length === 2) assert.include(named?.required ?? [], name)
      }
      const needed = one.parameters?.filter(({ required }) => required).map(({ name }) => name)
      for (const { name, required_in = [] } of query) {
        if (required_in.length === 2) assert.include(needed ?? [], name)
      }
    }
  })

  it("has no flag twice in a command, and none that is reserved", () => {
    const taken = ["json", "fields", "quiet", "profile", "as", "config", "set", "limit", "wait"]
    for (const { name, operation } of all) {
      const { query = [], body = [], for_operators } = operation
      const fields = [...query, ...(for_operators?.query ?? []), ...body]
      const flags = [...fields.map(flagOf), ...(for_operators ? [for_operators.flag] : []), "body"]
      assert.equal(new Set([...flags, ...taken]).size, flags.length + taken.length, name)
      const places = keysOf(operation).map((key) => argumentsOf(key).join())
      assert.equal(new Set(places).size, 1, `${name}: the same arguments for operators`)
    }
  })
})

/** Every request of each operation, with a value for each path parameter. */
const operations_covered = nouns.flatMap(({ name, operations, covered = [] }) =>
  [
    ...operations,
    ...operations.flatMap(({ method, for_operators }) =>
      for_operators === undefined ? [] : [{ method, path: for_operators.path }],
    ),
    ...covered,
  ].map(({ method, path }) => ({ name, method, path })),
)

const nextOf = (method: string, path: string) =>
  notFoundAdvice({ method, path: path.replaceAll(/\{\w+\}/g, "0193") })

/**
 * `readings sources`, all other commands that are made of operations, and those named in advice.
 */
const verbs = new Set([...all.map(({ name }) => name), "blobs list"])

describe("the hint for a missing resource", () => {
  it.each(operations_covered)("for $method $path names an existing command of its noun", (one) => {
    const { name, method, path } = one
    const advice = nextOf(method, path)
    const [, verb] = /almanac (\S+ [\w-]+)/.exec(advice) ?? []
    if (verb !== undefined) assert.isTrue(verbs.has(verb), advice)
    if (argumentsOf(path).length > 0) assert.equal(verb?.split(" ")[0], name, advice)
    if (method === "GET") assert.equal(nextOf(method, `${path}?since=2026-01-31`), advice)
  })

  it.each(operations_covered)(
    "by $method $path speaks of projects where there are some",
    ({ method, path }) => {
      const advice = nextOf(method, path)
      const names_a_thing =
        argumentsOf(path).length > 0 || `${method} ${path}` === "POST /v1/restores"
      const is_of_project = names_a_thing && needOf({ path }) === "tenant"
      assert.equal(/resources of other projects are not found/.test(advice), is_of_project, advice)
    },
  )

  it.each([
    ["GET", "/api/metrics/nope/history", "list the metrics: almanac readings sources"],
    ["GET", "/api/tier/9/history", "use a tier from 1 to 4: almanac readings show"],
    ["POST", "/v1/cluster/leave", "list the nodes: almanac cluster status"],
    ["POST", "/v1/admin/jobs/1/retry", "list them: almanac jobs list --all-projects"],
    ["POST", "/v3/auth/tokens", "check OS_AUTH_URL"],
    ["POST", "/v1/restores", /^list the backups: .* resources of other projects are not found/],
    ["POST", "/v1/webhooks/1/dead-letters/2/redeliver", /almanac webhooks dead-letters ID;/],
    ["POST", "/v1/webhooks/1/dead-letters/redeliver", /almanac webhooks list;/],
    ["GET", "/v1/target-templates/1", /templates of other domains are not found/],
    ["POST", "/v1/blobs/stat?scope=node", /^check the address/],
    ["GET", "/v1/restores", /^check the address/],
    ["GET", "/api/dashboard", /services in its configuration$/],
  ])("by %s %s is: %s", (method, path, expected) => {
    if (typeof expected === "string") assert.equal(nextOf(method, path), expected)
    else assert.match(nextOf(method, path), expected)
  })
})
