/**
 * The document of a running server: it passes a linter, and a client generated from it alone
 * completes a tenant's workflow. Source: DECISIONS of document 2, versions.
 */
import { execFileSync } from "node:child_process"
import { readFileSync, symlinkSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { createConfig, lintFromString } from "@redocly/openapi-core"
import { afterAll, assert, beforeAll, it } from "vitest"
import { describeWithServer } from "../world/programs/nats.ts"
import { cleanUp, newFolder, type Server, startServer } from "../world/server/server.ts"
import { programOf } from "./openapi-program.ts"

const root = join(import.meta.dirname, "../..")

/** Paths exempt from a recommended linter rule, with the reason. */
const exempt: Readonly<Record<string, ReadonlyArray<string>>> = {
  // Required by document 2 §4.
  "no-path-trailing-slash": ["/v1/"],
}

/** Rules beyond the recommended ones: everything is described, and examples are valid. */
const rules = {
  "operation-summary": "error",
  "operation-description": "error",
  "parameter-description": "error",
  "operation-operationId": "error",
  "operation-operationId-unique": "error",
  "operation-operationId-url-safe": "error",
  "operation-singular-tag": "error",
  "operation-tag-defined": "error",
  "tag-description": "error",
  "no-invalid-media-type-examples": "error",
  "no-invalid-parameter-examples": "error",
  "no-invalid-schema-examples": "error",
} as const

const isExempt = (rule: string, pointer = "") => {
  const [, path = ""] = /^#\/paths\/([^/]+)/.exec(pointer) ?? []
  return exempt[rule]?.includes(path.replaceAll("~1", "/").replaceAll("~0", "~")) ?? false
}

/** Document 2 §4: each operation, its success status and its errors in addition to 400 to 403. */
const operations = `
  GET /v1/ 200
  GET /v1/service_info 200
  GET /v1/targets 200
  POST /v1/targets 202 422
  GET /v1/targets/{id} 200 404
  PATCH /v1/targets/{id} 200 404
  DELETE /v1/targets/{id} 204 404 409
  GET /v1/targets/{id}/preflight 200 404 422
  GET /v1/policies 200
  POST /v1/policies 201 409
  GET /v1/policies/{id} 200 404
  PATCH /v1/policies/{id} 200 404
  DELETE /v1/policies/{id} 204 404 409
  POST /v1/policies/{id}/retention-preview 200 400 404 409
  GET /v1/backups 200
  POST /v1/backups 202 409
  POST /v1/backups/{id}/undelete 202 403 404 409
  GET /v1/backups/{id} 200 404
  DELETE /v1/backups/{id} 204 404 409
  GET /v1/restores 200
  POST /v1/restores 202 409
  GET /v1/restores/{id} 200 404
  GET /v1/jobs 200
  GET /v1/jobs/{id} 200 404
  POST /v1/jobs/{id}/cancel 202 404 409
  GET /v1/usage 200
  GET /v1/admin/workers 200
  POST /v1/admin/workers/{id}/drain 202 404
  POST /v1/admin/workers/{id}/retire 202 404
  GET /v1/admin/jobs 200
  GET /v1/admin/jobs/{id} 200 404
  POST /v1/admin/jobs/{id}/retry 202 404 409
  POST /v1/admin/jobs/{id}/cancel 202 404 409
  GET /v1/admin/coverage 200
  GET /v1/admin/targets 200
  GET /v1/admin/scheduling 200
  POST /v1/admin/scheduling/pause 202
  POST /v1/admin/scheduling/resume 202
  GET /v1/admin/reconciliation 200
  POST /v1/admin/reconciliation/trigger 202
  POST /v1/admin/targets/{id}/repo-format-upgrade 202 404 409
  GET /v1/admin/system/health 200
  PATCH /v1/admin/domains/{domain_id} 202`

/** Additional operations of shape B. */
const template_operations = `
  GET /v1/target-templates 200
  POST /v1/target-templates 201
  GET /v1/target-templates/{id} 200 404
  PATCH /v1/target-templates/{id} 200 404
  DELETE /v1/target-templates/{id} 204 404 409
  GET /v1/admin/target-templates 200`

/** Statuses that the door may send for any operation. */
const of_the_door = "429 500 503 504"

/** Document 3 §4 A: each operation, with its success status and its own errors. */
const dashboard_operations = `
  GET /health 200
  GET /api/dashboard 200 401 403
  GET /api/metrics/{metric_id}/history 200 400 401 403 404 422
  GET /api/metrics/{metric_id}/detail 200 400 401 403 404
  GET /api/tier/{tier}/history 200 400 401 403 404
  GET /api/sources 200 401 403
  GET /api/scheduler 200 401 403
  GET /api/watchlist 200 401 403`

/** Document 3 §4 B, and additional operations. */
const carrier_operations = `
  GET /api/search 200 400 406 502
  GET /api/search/sources 200`

/** Document 3 §4 C, and additional operations. */
const plant_operations = `
  POST /predict 200 400 413 415 422
  POST /predict/batch 200 400 413 415
  GET /predict/model 200
  GET /v2 200
  GET /v2/health/live 200
  GET /v2/health/ready 200
  GET /v2/models/{name} 200 400 404
  GET /v2/models/{name}/ready 200 400 404
  POST /v2/models/{name}/infer 200 400 404 413 415 422`

interface Parameter {
  readonly name: string
  readonly in: string
  readonly required: boolean
  readonly schema: object
}

interface Operation {
  readonly parameters: ReadonlyArray<Parameter>
  readonly operationId: string
  readonly security: ReadonlyArray<object>
  readonly requestBody?: { readonly content: object }
  readonly responses: Readonly<Record<string, { readonly content?: object }>>
}

interface Document {
  readonly openapi: string
  readonly info: { readonly version: string }
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>
}

interface Principals {
  readonly tenant: {
    readonly token: string
    readonly share_id: string
    readonly project_id: string
  }
  readonly domain_owner: { readonly token: string }
}

/** The strictest compiler options, for this folder alone. */
const compiler = JSON.stringify({
  compilerOptions: {
    target: "esnext",
    lib: ["esnext", "dom"],
    module: "nodenext",
    strict: true,
    noEmit: true,
    exactOptionalPropertyTypes: true,
    noUncheckedIndexedAccess: true,
    allowImportingTsExtensions: true,
    isolatedModules: true,
    types: ["node"],
    typeRoots: [join(root, "node_modules/@types")],
  },
})

/** The output of a command; on failure, the error contains all of it. */
const printed = (cwd: string, args: ReadonlyArray<string>, input = "") => {
  try {
    return execFileSync(process.execPath, args, { cwd, input, encoding: "utf8", stdio: "pipe" })
  } catch (error) {
    // The errors of execFileSync have both fields.
    const { stdout, stderr } = error as { readonly stdout: string; readonly stderr: string }
    throw new Error(`${stdout}\n${stderr}`, { cause: error })
  }
}

/** A folder with the types of the document and the program for the shape. */
const programFolder = (text: string, shape: "A" | "B") => {
  const folder = newFolder()
  const types = printed(root, [join(import.meta.dirname, "openapi-types.ts")], text)
  writeFileSync(join(folder, "openapi.ts"), types)
  writeFileSync(join(folder, "program.ts"), programOf(shape))
  writeFileSync(join(folder, "package.json"), JSON.stringify({ type: "module" }))
  writeFileSync(join(folder, "tsconfig.json"), compiler)
  symlinkSync(join(root, "node_modules"), join(folder, "node_modules"))
  return folder
}

afterAll(cleanUp)

const documentOfShape = (shape: "A" | "B") => {
  let server: Server
  let text: string
  let document: Document
  beforeAll(async () => {
    server = await startServer(newFolder(), { ALMANAC_API__SHAPE: shape })
    const answer = await fetch(new URL("/openapi.json", server.url))
    text = await answer.text()
    document = JSON.parse(text)
  })
  afterAll(() => server?.stop())

  it("is version 0.1.0 of an OpenAPI 3.1 document", () => {
    assert.equal(document.info.version, "0.1.0")
    assert.match(document.openapi, /^3\.1\.\d$/)
  })

  it("passes the linter's recommended rules", async () => {
    const config = await createConfig({ extends: ["recommended"], rules })
    const found = await lintFromString({ source: text, config, absoluteRef: "openapi.json" })
    const problems = found.map(({ ruleId, message, location: [place] }) => ({
      rule: ruleId,
      message,
      pointer: place?.pointer,
    }))
    assert.deepEqual(
      problems.filter(({ rule, pointer }) => !isExempt(rule, pointer)),
      [],
    )
    // Remove exemptions that are no longer needed.
    const needed = Object.values(exempt).flat().length
    assert.equal(problems.length, needed)
  })

  it("has every operation of document 2 §4 with its statuses", () => {
    const wanted = operations + (shape === "B" ? template_operations : "")
    for (const line of wanted.trim().split(/\n\s*/)) {
      const [method = "", path = "", ...statuses] = line.split(" ")
      const operation = document.paths[path]?.[method.toLowerCase()]
      assert.isDefined(operation, line)
      const is_public = path === "/v1/service_info"
      const refused = is_public ? [] : path === "/v1/" ? ["401"] : ["401", "403"]
      assert.containsAllKeys(operation?.responses, [...statuses, ...refused], line)
      assert.equal(operation?.security.length === 0, is_public, line)
      const succeeded = Object.keys(operation?.responses ?? {}).filter((key) => key < "300")
      assert.deepEqual(succeeded, statuses.slice(0, 1), line)
    }
    assert.equal("/v1/target-templates" in document.paths, shape === "B")
  })

  it("has every operation of document 3 §4 with its statuses", () => {
    const documented = Object.entries(document.paths)
      .filter(([path]) => /^\/(api|health|predict|v2)/.test(path))
      .flatMap(([path, operations]) =>
        Object.entries(operations).map(([method, { responses }]) =>
          [method.toUpperCase(), path, ...Object.keys(responses).toSorted()].join(" "),
        ),
      )
    const wanted = (dashboard_operations + carrier_operations + plant_operations)
      .trim()
      .split(/\n\s*/)
      .map((line) => {
        const [method, path, ...statuses] = `${line} ${of_the_door}`.split(" ")
        return [method, path, ...statuses.toSorted()].join(" ")
      })
    assert.deepEqual(documented.toSorted(), wanted.toSorted())
  })

  it("says how carriers are searched: two integers, three forms, by anybody", () => {
    const { security, parameters, responses } = document.paths["/api/search"]?.get ?? {}
    assert.deepEqual(security, [])
    const schema = { type: "integer", minimum: 1, maximum: 99_999_999 }
    const documented = parameters?.map(({ name, in: place, required, schema }) => {
      return { name, place, required, schema }
    })
    assert.deepEqual(
      documented,
      ["start", "end"].map((name) => ({ name, place: "query", required: true, schema })),
    )
    const forms = ["application/json", "text/csv", "application/x-ndjson"]
    assert.sameMembers(Object.keys(responses?.["200"]?.content ?? {}), forms)
    for (const status of ["400", "406", "502"]) {
      assert.deepEqual(Object.keys(responses?.[status]?.content ?? {}), ["application/json"])
    }
  })

  it("says how an image is sent, and what may be asked with it, by anybody", () => {
    const { security, parameters, requestBody, responses } = document.paths["/predict"]?.post ?? {}
    assert.deepEqual(security, [])
    const query = parameters?.filter(({ in: place }) => place === "query")
    const documented = query?.map(({ name, in: place, required }) => ({ name, place, required }))
    assert.deepEqual(
      documented,
      ["top_k", "explain"].map((name) => ({ name, place: "query", required: false })),
    )
    assert.deepEqual(Object.keys(requestBody?.content ?? {}), ["multipart/form-data"])
    const forms = ["application/json", "image/png"]
    assert.sameMembers(Object.keys(responses?.["200"]?.content ?? {}), forms)
  })

  it("makes a client that compiles and goes a tenant's way", async () => {
    const folder = programFolder(text, shape)
    printed(folder, [join(root, "node_modules/typescript/bin/tsc"), "-p", "."])
    const file = readFileSync(join(server.data_dir, "dev-credentials.json"), "utf8")
    const { tenant, domain_owner }: Principals = JSON.parse(file)
    const { token, share_id, project_id } = tenant
    const known = [server.url, token, domain_owner.token, share_id, project_id]
    assert.equal(printed(folder, ["program.ts", ...known]), "done\n")
  })
}

for (const shape of ["A", "B"] as const)
  describeWithServer(`the OpenAPI document of Shape ${shape}`, () => documentOfShape(shape))
