/**
 * Programs over the generated types, as text: they are compiled next to types that exist only while
 * the test runs. They end with an error if a response is unexpected.
 */

const begin = `
import createClient from "openapi-fetch"
import type { paths } from "./openapi.ts"

const given = process.argv.slice(2)
const [baseUrl = "", token = "", owner_token = "", share_id = "", project_id = ""] = given
const clientWith = (token: string) =>
  createClient<paths>({ baseUrl, headers: { "x-auth-token": token } })
const tenant = clientWith(token)

const must: (is_so: boolean, what: unknown) => asserts is_so = (is_so, what) => {
  if (!is_so) throw new Error(JSON.stringify(what))
}

/** A status of an operation in the document; the client does not have it in its types. */
type Status<Path extends keyof paths, Method extends keyof paths[Path]> =
  paths[Path][Method] extends { responses: infer All } ? keyof All : never
`

/** The requests of both shapes. */
const end = `
const at = (id: string) => ({ params: { path: { id } } })

const read = await tenant.GET("/v1/targets/{id}", at(target_id))
must(read.response.status === 200 && read.data?.id === target_id, read)
must(read.data.name === "Backups", read)

const unknown = await tenant.GET("/v1/targets/{id}", at(share_id))
must(unknown.response.status === 404 && unknown.error?.code === "svc.not_found", unknown)

const backups = await tenant.GET("/v1/backups", { params: { query: { share_id, limit: 5 } } })
must(backups.response.status === 200 && backups.data?.pagination.count === 1, backups)

const jobs = await tenant.GET("/v1/jobs", {
  params: { query: { resource_id: backup_id, state: "queued" } },
})
must(jobs.response.status === 200 && jobs.data !== undefined, jobs)
const [job] = jobs.data.KEY_JOBS
must(job !== undefined && job.job_type === "backup" && job.error === null, jobs)

const cancelled = await tenant.POST("/v1/jobs/{id}/cancel", at(job.id))
must(cancelled.response.status === 202 && cancelled.data?.state === "error", cancelled)
const again = await tenant.POST("/v1/jobs/{id}/cancel", at(job.id))
must(again.response.status === 409 && again.error?.code === "svc.conflict", again)

const failed = await tenant.GET("/v1/backups/{id}", at(backup_id))
must(failed.response.status === 200 && failed.data?.status === "error", failed)

const usage = await tenant.GET("/v1/usage")
must(usage.response.status === 200 && usage.data?.project_id === project_id, usage)

const removed = await tenant.DELETE("/v1/policies/{id}", at(policy_id))
must(removed.response.status === 204 && removed.data === undefined, removed)

200 satisfies Status<"/v1/targets", "get">
202 satisfies Status<"/v1/targets", "post">
200 satisfies Status<"/v1/targets/{id}", "get">
404 satisfies Status<"/v1/targets/{id}", "get">
201 satisfies Status<"/v1/policies", "post">
204 satisfies Status<"/v1/policies/{id}", "delete">
200 satisfies Status<"/v1/backups", "get">
202 satisfies Status<"/v1/backups", "post">
200 satisfies Status<"/v1/backups/{id}", "get">
200 satisfies Status<"/v1/jobs", "get">
202 satisfies Status<"/v1/jobs/{id}/cancel", "post">
409 satisfies Status<"/v1/jobs/{id}/cancel", "post">
200 satisfies Status<"/v1/usage", "get">
// @ts-expect-error A target is accepted, not created.
201 satisfies Status<"/v1/targets", "post">

// @ts-expect-error There is no such path.
void (() => tenant.GET("/v1/policy", {}))
// @ts-expect-error A policy cannot be put.
void (() => tenant.PUT("/v1/policies/{id}", at(policy_id)))
// @ts-expect-error A path needs its names.
void (() => tenant.GET("/v1/policies/{id}", {}))
// @ts-expect-error A state is one of the document's.
void (() => tenant.GET("/v1/jobs", { params: { query: { state: "asleep" } } }))
// @ts-expect-error A backup has no such field.
void failed.data.colour
// @ts-expect-error An error's code is one of the document's.
void (unknown.error.code === "svc.lost")
console.log("done")
`

const of_a = `
const target = await tenant.POST("/v1/targets", {
  body: { name: "Backups", endpoint: "https://s3.example.org", bucket: "backups" },
})
must(target.response.status === 202 && target.data?.job.job_type === "target_enroll", target)
const target_id = target.data.target.id

const policy = await tenant.POST("/v1/policies", {
  body: { name: "N", share_id, target_id, schedule: "0 2 * * *", retention: { keep_last: 3 } },
})
must(policy.response.status === 201 && policy.data?.enabled === true, policy)
const policy_id = policy.data.id

const backup = await tenant.POST("/v1/backups", { body: { share_id, policy_id } })
must(backup.response.status === 202 && backup.data?.backup.status === "creating", backup)
const backup_id = backup.data.backup.id

const targets = await tenant.GET("/v1/targets")
must(targets.response.status === 200 && targets.data?.targets[0]?.bucket === "backups", targets)

// @ts-expect-error A target needs a bucket.
void (() => tenant.POST("/v1/targets", { body: { name: "B", endpoint: "https://s3" } }))
`

const of_b = `
const owner = clientWith(owner_token)
const template = await owner.POST("/v1/target-templates", {
  body: {
    ...{ name: "S3", endpoint: "https://s3.example.org", bucket_scheme: "per_project" },
    default_retention: { keep_daily: 7 },
  },
})
must(template.response.status === 201 && template.data !== undefined, template)
201 satisfies Status<"/v1/target-templates", "post">
const target_template_id = template.data.id

const target = await owner.POST("/v1/targets", {
  body: {
    ...{ name: "Backups", bucket_name: "backups", template_id: target_template_id, project_id },
    s3_access_key_ref: "https://vault.example.org/v1/secrets/" + project_id,
    s3_secret_key_ref: "https://vault.example.org/v1/secrets/" + share_id,
  },
})
must(target.response.status === 202 && target.data?.status === "enrolling", target)
const target_id = target.data.id

const policy = await tenant.POST("/v1/policies", {
  body: { name: "Nightly", share_id, target_template_id, schedule: "0 2 * * *" },
})
must(policy.response.status === 201 && policy.data?.enabled === true, policy)
const policy_id = policy.data.id

const backup = await tenant.POST("/v1/backups", { body: { share_id, policy_id } })
must(backup.response.status === 202 && backup.data?.status === "creating", backup)
const backup_id = backup.data.id

const targets = await tenant.GET("/v1/targets")
must(targets.response.status === 200 && targets.data?.items[0]?.bucket_name === "backups", targets)

// @ts-expect-error A template needs a name.
void (() => owner.POST("/v1/target-templates", { body: { endpoint: "https://s3" } }))
`

/** The program for a shape: it creates, lists, reads, cancels and deletes. */
export const programOf = (shape: "A" | "B") =>
  begin + (shape === "A" ? of_a : of_b) + end.replace("KEY_JOBS", shape === "A" ? "jobs" : "items")
