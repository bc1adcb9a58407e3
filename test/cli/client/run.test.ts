/** The requests that a command sends. */
import { assert, describe, it } from "@effect/vitest"
import { runOperation } from "#cli/client/run.ts"
import { domains } from "#cli/client/share-protection/fleet.ts"
import { jobs } from "#cli/client/share-protection/job.ts"
import { policies } from "#cli/client/share-protection/policy.ts"
import { endingOf, json, sessionWith, withServer } from "./scripted.ts"

const id = "0193f5a0-7c1e-7d3a-9b54-2f6f0c1d8e01"
const nothing = { arguments: { id, domain_id: "d" }, fields: {}, limit: 0, wait: false }

interface Asked {
  readonly present?: object
  readonly made?: object
  readonly body?: object
  readonly wait?: boolean
}

/** The requests to a server whose GET returns `present`, each with its body. */
const sent = (
  noun: typeof policies,
  name: string,
  fields: Readonly<Record<string, number | string>>,
  { present = {}, made = { id }, body, wait = false }: Asked = {},
) =>
  withServer(
    ({ method }, answer) =>
      method === "GET" && Object.keys(present).length === 0
        ? json(answer, 404, { code: "svc.not_found", detail: "No such domain." })
        : json(answer, 200, method === "GET" ? present : made),
    async ({ url, heard }) => {
      const { session } = sessionWith(url, { json: true })
      const operation = noun.operations.find(({ command: verb }) => verb === name)
      assert(operation !== undefined)
      // Plain JSON, as read from a file.
      const given = body === undefined ? {} : { body: JSON.parse(JSON.stringify(body)) }
      await endingOf(runOperation(session, operation, { ...nothing, wait, fields, ...given }))
      return heard.map(({ method, path, body }) => [
        `${method} ${path}`,
        String(body) === "" ? undefined : JSON.parse(String(body)),
      ])
    },
  )

const retention = { keep_daily: 7, keep_weekly: 4 }
const policy = { id, name: "nightly", retention }

describe("an operator's --wait", () => {
  it("watches the job as an operator, because any project may own it", async () => {
    const job = { id, job_type: "backup", state: "available" }
    const response = await sent(jobs, "retry", {}, { present: job, made: job, wait: true })
    assert.deepEqual(response, [
      [`POST /v1/admin/jobs/${id}/retry`, undefined],
      [`GET /v1/admin/jobs/${id}`, undefined],
    ])
  })
})

describe("a flag of one member of an object", () => {
  it("leaves the other members unchanged", async () => {
    const response = await sent(
      policies,
      "update",
      { "retention.keep_daily": 14 },
      { present: policy },
    )
    assert.deepEqual(response, [
      [`GET /v1/policies/${id}`, undefined],
      [`PATCH /v1/policies/${id}`, { retention: { keep_daily: 14, keep_weekly: 4 } }],
    ])
  })

  it("is previewed as it would be", async () => {
    const response = await sent(
      policies,
      "preview",
      { "retention.keep_weekly": 0 },
      { present: policy },
    )
    assert.deepEqual(response.at(-1), [
      `POST /v1/policies/${id}/retention-preview`,
      { retention: { keep_daily: 7, keep_weekly: 0 } },
    ])
  })

  it("is sent alone if nothing is set", async () => {
    const response = await sent(domains, "update", { "quotas.targets": 5 })
    assert.deepEqual(response.at(-1), ["PATCH /v1/admin/domains/d", { quotas: { targets: 5 } }])
  })

  it("is merged into the object of a file", async () => {
    const body = { retention: { keep_last: 3 } }
    const fields = { "retention.keep_daily": 14 }
    const [, change] = await sent(policies, "update", fields, { present: policy, body })
    assert.deepEqual(change?.[1], { retention: { keep_last: 3, keep_daily: 14 } })
  })

  it("or of anything is needed for a change: without one nothing is sent", async () => {
    assert.deepEqual(await sent(policies, "update", {}, { present: policy }), [])
  })

  it("is not asked for where none is given", async () => {
    const body = await sent(policies, "update", { name: "weekly" }, { present: policy })
    assert.deepEqual(body, [[`PATCH /v1/policies/${id}`, { name: "weekly" }]])
  })
})
