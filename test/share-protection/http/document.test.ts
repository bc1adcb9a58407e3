import { assert, describe } from "@effect/vitest"
import { Effect } from "effect"
import { OpenApi } from "effect/http-api"
import { it } from "vitest"
import { compress } from "#adapters/http/page-files.ts"
import { served } from "#gateway/share-protection/routes.ts"
import { shape_a } from "#gateway/share-protection/shapes/shape-a.ts"
import { shape_b } from "#gateway/share-protection/shapes/shape-b.ts"
import { documented } from "#gateway/system/document.ts"
import { systemService } from "#gateway/system/service.ts"
import { as, startHttp } from "../../world/http.ts"

interface Operation {
  readonly security: ReadonlyArray<Readonly<Record<string, ReadonlyArray<string>>>>
  readonly responses: Readonly<Record<string, unknown>>
  readonly requestBody?: unknown
}

const documentOf = (shape: typeof shape_a) => {
  const document = OpenApi.fromApi(documented([served(shape).api]))
  // The library's own document: operations by path and method.
  const paths = document.paths as unknown as Record<string, Record<string, Operation>>
  return { document, paths }
}

describe.each([shape_a, shape_b])("the OpenAPI document of Shape $name", (shape) => {
  const { document, paths } = documentOf(shape)

  it("is version 0.1.0 and has every path of the shape", () => {
    assert.equal(document.info.version, "0.1.0")
    assert.match(document.openapi, /^3\.1\./)
    for (const path of ["/v1/targets/{id}/enroll", "/v1/backups", "/v1/admin/rollouts/{id}"]) {
      assert.property(paths, path)
    }
    assert.equal("/v1/target-templates/{id}" in paths, shape.name === "B")
    assert.equal(Object.keys(paths).length, shape.name === "A" ? 36 : 39)
  })

  it("describes the path, parameters and responses of each operation", () => {
    for (const [path, operations] of Object.entries(paths)) {
      for (const [method, operation] of Object.entries(operations)) {
        const name = `${method} ${path}`
        const { security, responses, requestBody } = operation
        const schemes = security.flatMap((one) => Object.keys(one))
        assert.deepEqual(schemes, path === "/v1/service_info" ? [] : ["keystone", "bearer"], name)
        const statuses = Object.keys(responses)
        for (const status of ["400", "401", "403", "500", "503"]) {
          assert.include(statuses, status, name)
        }
        if (path.includes("{id}")) assert.include(statuses, "404", name)
        if (method === "patch") assert.isDefined(requestBody, name)
      }
    }
  })

  it("has only valid references", () => {
    const text = JSON.stringify(document)
    const known = Object.keys(document.components.schemas)
    const names = [...text.matchAll(/"#\/components\/schemas\/([^"]+)"/g)].map(([, name]) => name)
    assert.isAbove(names.length, 100)
    for (const name of names) assert.include(known, name)
  })

  it("has the Location of the job in exactly the responses that start one", () => {
    const named = Object.entries(paths).flatMap(([path, operations]) =>
      Object.entries(operations).flatMap(([method, { responses }]) =>
        JSON.stringify(responses["202"])?.includes('"headers":{"location"') === true
          ? [`${method} ${path}`]
          : [],
      ),
    )
    assert.deepEqual(named.toSorted(), [
      "post /v1/admin/targets/{id}/repo-format-upgrade",
      "post /v1/backups",
      "post /v1/backups/{id}/undelete",
      "post /v1/restores",
      "post /v1/targets",
      "post /v1/targets/{id}/enroll",
    ])
  })

  it("has no field of the other shape", () => {
    const text = JSON.stringify(document.components.schemas)
    const of_a = ["vault_secret_map", "repository_password_ref"]
    const of_b = ["bucket_name", "s3_access_key_ref", "target_template_id", "target_bucket_id"]
    const [own, other] = shape.name === "A" ? [of_a, of_b] : [of_b, of_a]
    for (const field of own) assert.include(text, `"${field}"`)
    for (const field of other) assert.notInclude(text, `"${field}"`)
  })
})

describe("the version documents", () => {
  it("of / is 300 without a token, of /v1 and /v1/ 200 with one", async () => {
    const none = { services: [], compress }
    const system = await Effect.runPromise(Effect.scoped(systemService(none)))
    const listening = await startHttp([system])
    const links = [{ rel: "self", href: "/v1/" }]
    const version = { id: "v1.0", status: "CURRENT", links }
    const home = await listening.fetch("/")
    assert.deepEqual([home.status, await home.json()], [300, { versions: [version] }])
    for (const path of ["/v1", "/v1/"]) {
      assert.equal((await listening.fetch(path)).status, 401)
      for (const headers of [as("reader"), { "x-auth-token": "reader" }]) {
        const answer = await listening.fetch(path, { headers })
        assert.deepEqual([answer.status, await answer.json()], [200, { version }])
      }
    }
    await listening.stop()
  })
})
