/**
 * Programs over the generated types, as text: they are compiled next to types that exist only while
 * the test runs. They end with an error if a response is unexpected.
 */

const begin = `
import { clientOf } from "./openapi-client.ts"
import type { paths } from "./openapi.ts"

const given = process.argv.slice(2)
const [url = "", token = "", owner_token = "", share_id = "", project_id = ""] = given
const ask = clientOf<paths>(url, token)

const must: (is_so: boolean, what: unknown) => asserts is_so = (is_so, what) => {
  if (!is_so) throw new Error(JSON.stringify(what))
}
`

/** The ways that every tenant goes; \`listed\` answers what a page has, by its shape. */
const end = `
const read = await ask("get", "/v1/targets/{id}", { path: { id: target_id } })
must(read.status === 200 && read.body.id === target_id, read)
must(read.body.name === "Backups", read)

const unknown = await ask("get", "/v1/targets/{id}", { path: { id: share_id } })
must(unknown.status === 404 && unknown.body.code === "svc.not_found", unknown)

const backups = await ask("get", "/v1/backups", { query: { share_id, limit: 5 } })
must(backups.status === 200 && backups.body.pagination.count === 1, backups)

const jobs = await ask("get", "/v1/jobs", { query: { resource_id: backup_id, state: "queued" } })
must(jobs.status === 200, jobs)
const [job] = jobs.body.KEY_JOBS
must(job !== undefined && job.job_type === "backup" && job.error === null, jobs)

const cancelled = await ask("post", "/v1/jobs/{id}/cancel", { path: { id: job.id } })
must(cancelled.status === 202 && cancelled.body.state === "error", cancelled)
const again = await ask("post", "/v1/jobs/{id}/cancel", { path: { id: job.id } })
must(again.status === 409 && again.body.code === "svc.conflict", again)

const failed = await ask("get", "/v1/backups/{id}", { path: { id: backup_id } })
must(failed.status === 200 && failed.body.status === "error", failed)

const usage = await ask("get", "/v1/usage", {})
must(usage.status === 200 && usage.body.project_id === project_id, usage)

const removed = await ask("delete", "/v1/policies/{id}", { path: { id: policy_id } })
must(removed.status === 204 && removed.body === undefined, removed)

// @ts-expect-error There is no such path.
void (() => ask("get", "/v1/policy", {}))
// @ts-expect-error A policy cannot be put.
void (() => ask("put", "/v1/policies/{id}", { path: { id: policy_id } }))
// @ts-expect-error A path needs its names.
void (() => ask("get", "/v1/policies/{id}", {}))
// @ts-expect-error A state is one of the document's.
void (() => ask("get", "/v1/jobs", { query: { state: "asleep" } }))
// @ts-expect-error A backup has no such field.
void failed.body.colour
console.log("done")
`

const of_a = `
const target = await ask("post", "/v1/targets", {
  body: { name: "Backups", endpoint: "https://s3.example.org", bucket: "backups" },
})
must(target.status === 202 && target.body.job.job_type === "target_enroll", target)
const target_id = target.body.target.id

const policy = await ask("post", "/v1/policies", {
  body: { name: "N", share_id, target_id, schedule: "0 2 * * *", retention: { keep_last: 3 } },
})
must(policy.status === 201 && policy.body.enabled, policy)
const policy_id = policy.body.id

const backup = await ask("post", "/v1/backups", { body: { share_id, policy_id } })
must(backup.status === 202 && backup.body.backup.status === "creating", backup)
const backup_id = backup.body.backup.id

const targets = await ask("get", "/v1/targets", {})
must(targets.status === 200 && targets.body.targets[0]?.bucket === "backups", targets)

// @ts-expect-error A target needs a bucket.
void (() => ask("post", "/v1/targets", { body: { name: "B", endpoint: "https://s3" } }))
`

const of_b = `
const owner = clientOf<paths>(url, owner_token)
const template = await owner("post", "/v1/target-templates", {
  body: {
    ...{ name: "S3", endpoint: "https://s3.example.org", bucket_scheme: "per_project" },
    default_retention: { keep_daily: 7 },
  },
})
must(template.status === 201, template)
const target_template_id = template.body.id

const target = await owner("post", "/v1/targets", {
  body: {
    ...{ name: "Backups", bucket_name: "backups", template_id: target_template_id, project_id },
    s3_access_key_ref: "https://vault.example.org/v1/secrets/" + project_id,
    s3_secret_key_ref: "https://vault.example.org/v1/secrets/" + share_id,
  },
})
must(target.status === 202 && target.body.status === "enrolling", target)
const target_id = target.body.id

const policy = await ask("post", "/v1/policies", {
  body: { name: "Nightly", share_id, target_template_id, schedule: "0 2 * * *" },
})
must(policy.status === 201 && policy.body.enabled, policy)
const policy_id = policy.body.id

const backup = await ask("post", "/v1/backups", { body: { share_id, policy_id } })
must(backup.status === 202 && backup.body.status === "creating", backup)
const backup_id = backup.body.id

const targets = await ask("get", "/v1/targets", {})
must(targets.status === 200 && targets.body.items[0]?.bucket_name === "backups", targets)

// @ts-expect-error A template needs a name.
void (() => owner("post", "/v1/target-templates", { body: { endpoint: "https://s3" } }))
`

/** The program for a shape: it creates, lists, reads, cancels and deletes. */
export const programOf = (shape: "A" | "B") =>
  begin + (shape === "A" ? of_a : of_b) + end.replace("KEY_JOBS", shape === "A" ? "jobs" : "items")
