/** The examples of share protection in the API reference are its responses, in both shapes. */
import { describe } from "@effect/vitest"
import { Effect, Struct } from "effect"
import { expect } from "vitest"
import { expireBackups } from "#actors/share-protection/requests.ts"
import { shape_a } from "#gateway/share-protection/shapes/shape-a.ts"
import { shape_b } from "#gateway/share-protection/shapes/shape-b.ts"
import { BackupId, JobId, TargetId } from "#schemas/share-protection/id.ts"
import { apisOf } from "../../world/every-api.ts"
import {
  admin,
  bucket,
  bucketOf,
  made,
  owner,
  policyOf,
  template,
} from "../../world/share-protection/http/given.ts"
import { domain_id, project_a, share_a, share_a2 } from "../../world/share-protection/http/ports.ts"
import { type Client, served } from "../../world/share-protection/http/served.ts"
import {
  fail,
  other_worker_id,
  register,
  run,
  tell,
  worker_id,
} from "../../world/share-protection/http/transitions.ts"
import { snapshot, uuid } from "../../world/share-protection/samples.ts"
import { documentOf } from "./gaps.ts"
import { fileText, recorder } from "./recording.ts"

const expire = (target_id: string, backup_id: string, job_id: string) => {
  const { engine_snapshot_id } = snapshot
  const backups = [{ backup_id: BackupId.make(backup_id), engine_snapshot_id }]
  const going = { project_id: project_a, target_id: TargetId.make(target_id), backups }
  return tell(...expireBackups({ ...going, job_id: JobId.make(job_id) }))
}

/** A client whose requests and responses become examples. */
const recording = (ask: Client, record: ReturnType<typeof recorder>["record"]): Client =>
  Effect.fnUntraced(function* (method, path, body, asked) {
    const answer = yield* ask(method, path, body, asked)
    const { status, text } = answer
    const response = text === "" ? "" : answer.body
    record({ method, path, status, response, ...(body !== undefined && { request: body }) })
    return answer
  })

const tenant = { token: "tenant" }

/** A policy, a backup of it and their changes. */
const backUp = Effect.fnUntraced(function* (ask: Client, policy: object, target_id: string) {
  const created = yield* made(ask, "/v1/policies", policy)
  const path = `/v1/policies/${created.id}`
  yield* ask("GET", "/v1/policies?limit=10")
  yield* ask("GET", path)
  yield* ask("PATCH", path, { enabled: true, schedule: "0 3 * * *" })
  const asked = { share_id: share_a, policy_id: created.id }
  const backup = yield* made(ask, "/v1/backups", asked)
  yield* ask("POST", "/v1/backups", asked)
  const job_id = String(backup.job?.id ?? backup.job_id)
  const backup_id = String(backup.backup?.id ?? backup.id)
  yield* ask("DELETE", path)
  yield* run(job_id, 2)
  yield* ask("GET", "/v1/backups?status=available&limit=10")
  yield* ask("GET", `/v1/backups/${backup_id}`)
  yield* ask("POST", `${path}/retention-preview`, { retention: { keep_last: 3 } })
  yield* ask("GET", "/v1/admin/coverage", undefined, admin)
  yield* ask("GET", "/v1/admin/scheduling", undefined, admin)
  yield* ask("GET", "/v1/usage")
  const restore = yield* made(ask, "/v1/restores", { backup_id, mode: "new_share" })
  yield* ask("POST", "/v1/restores", { backup_id, mode: "in_place" })
  yield* run(String(restore.job?.id ?? restore.job_id), 3)
  const restore_id = String(restore.restore?.id ?? restore.id)
  yield* ask("GET", `/v1/restores?backup_id=${backup_id}&limit=10`)
  yield* ask("GET", `/v1/restores/${restore_id}`)
  yield* ask("DELETE", `/v1/targets/${target_id}`)
  yield* expire(target_id, backup_id, uuid(77))
  yield* run(uuid(77), 4)
  yield* ask("POST", `/v1/backups/${backup_id}/undelete`)
  const second = yield* made(ask, "/v1/backups", { ...asked, share_id: share_a })
  const second_id = String(second.backup?.id ?? second.id)
  const cancelled = String(second.job?.id ?? second.job_id)
  yield* ask("GET", "/v1/jobs?state=queued&limit=10")
  yield* ask("GET", `/v1/jobs/${cancelled}`)
  yield* ask("POST", `/v1/jobs/${cancelled}/cancel`)
  yield* ask("POST", `/v1/jobs/${cancelled}/cancel`)
  yield* ask("GET", "/v1/admin/jobs?state=error&limit=10", undefined, admin)
  yield* ask("GET", `/v1/admin/jobs/${cancelled}`, undefined, admin)
  yield* ask("POST", `/v1/admin/jobs/${cancelled}/retry`, undefined, admin)
  yield* ask("POST", `/v1/admin/jobs/${cancelled}/cancel`, undefined, admin)
  yield* ask("DELETE", `/v1/backups/${second_id}`)
  yield* ask("DELETE", path)
})

/** Requests of operators. */
const operate = Effect.fnUntraced(function* (ask: Client, target_id: string) {
  const get = (path: string) => ask("GET", path, undefined, admin)
  const post = (path: string, body?: unknown) => ask("POST", path, body, admin)
  yield* get("/v1/admin/targets?status=available&limit=10")
  yield* post(`/v1/admin/targets/${target_id}/repo-format-upgrade`)
  yield* register(other_worker_id, "worker-2")
  yield* get("/v1/admin/workers?state=ready")
  yield* post(`/v1/admin/workers/${worker_id}/retire`)
  yield* post(`/v1/admin/workers/${worker_id}/drain`)
  yield* post(`/v1/admin/workers/${worker_id}/retire`)
  const rollout = yield* post("/v1/admin/rollouts", { image: "worker-2", domain_ids: [domain_id] })
  yield* post("/v1/admin/rollouts", { image: "worker-2", domain_ids: [domain_id] })
  yield* get("/v1/admin/rollouts?limit=10")
  yield* get(`/v1/admin/rollouts/${rollout.body.id}`)
  const domain = `/v1/admin/domains/${domain_id}`
  yield* ask("PATCH", domain, { min_workers: 2, max_workers: 5, quotas: { targets: 20 } }, admin)
  yield* get(domain)
  yield* post("/v1/admin/scheduling/pause")
  yield* post("/v1/admin/scheduling/resume")
  yield* get("/v1/admin/reconciliation")
  yield* post("/v1/admin/reconciliation/trigger")
  yield* get("/v1/admin/system/health")
  yield* ask("GET", "/v1/service_info", undefined, { token: "" })
})

const throughA = Effect.fnUntraced(function* (ask: Client) {
  const { target, job } = yield* made(ask, "/v1/targets", bucket)
  const path = `/v1/targets/${target.id}`
  yield* register()
  yield* run(job.id, 1)
  yield* ask("GET", "/v1/targets?status=available&limit=10")
  yield* ask("GET", path)
  yield* ask("PATCH", path, { name: "Offsite backups" })
  yield* ask("GET", `${path}/preflight`)
  const other = yield* made(ask, "/v1/targets", { ...bucket, name: "Archive", bucket: "archive" })
  yield* fail(other.job.id, 1)
  yield* ask("POST", `/v1/targets/${other.target.id}/enroll`)
  yield* ask("POST", `/v1/targets/${other.target.id}/enroll`)
  const third = yield* made(ask, "/v1/targets", { ...bucket, name: "Unused", bucket: "unused" })
  yield* backUp(ask, policyOf(target.id), String(target.id))
  yield* operate(ask, String(target.id))
  yield* ask("POST", `/v1/jobs/${third.job.id}/cancel`)
  yield* ask("DELETE", `/v1/targets/${third.target.id}`)
})

const throughB = Effect.fnUntraced(function* (ask: Client) {
  const created = yield* ask("POST", "/v1/target-templates", template, owner)
  const { id } = created.body
  const path = `/v1/target-templates/${id}`
  yield* ask("GET", "/v1/target-templates?limit=10", undefined, owner)
  yield* ask("GET", path, undefined, owner)
  yield* ask("PATCH", path, { default_retention: { keep_daily: 7 } }, owner)
  yield* ask("GET", "/v1/admin/target-templates?limit=10", undefined, admin)
  const target = yield* made(ask, "/v1/targets", bucketOf(String(id)), "owner")
  yield* register()
  yield* run(target.job_id, 1)
  yield* ask("DELETE", path, undefined, owner)
  const at = `/v1/targets/${target.id}`
  yield* ask("GET", "/v1/targets?status=available&limit=10", undefined, tenant)
  yield* ask("GET", at)
  yield* ask("PATCH", at, { trust_id: "trust-of-project-a" }, owner)
  yield* ask("GET", `${at}/preflight`)
  const other = yield* made(
    ask,
    "/v1/targets",
    { ...bucketOf(String(id)), bucket_name: "archive" },
    "owner",
  )
  yield* fail(other.job_id, 1)
  yield* ask("POST", `/v1/targets/${other.id}/enroll`, undefined, owner)
  const policy = { ...Struct.omit(policyOf(""), ["target_id"]), target_template_id: id }
  yield* backUp(ask, policy, String(target.id))
  yield* operate(ask, String(target.id))
  yield* made(ask, "/v1/policies", { ...policy, share_id: share_a2 })
})

const folder = `${import.meta.dirname}/../../../gateway/share-protection/shapes`

describe("the examples of share protection", () => {
  for (const [shape, through] of [
    [shape_a, throughA],
    [shape_b, throughB],
  ] as const) {
    const file = `${folder}/examples-${shape.name.toLowerCase()}.json`
    served(
      `in Shape ${shape.name} are recorded responses`,
      (ask) =>
        Effect.gen(function* () {
          const { record, examples } = recorder(documentOf(apisOf(shape)))
          yield* through(recording(ask, record))
          yield* Effect.promise(() => expect(fileText(file, examples)).toMatchFileSnapshot(file))
        }),
      { shape: shape.name },
    )
  }
})
