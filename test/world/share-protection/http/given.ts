/** Preconditions of tests: valid request bodies, and resources created from them. */
import { assert } from "@effect/vitest"
import { Effect } from "effect"
import { secretRef } from "../samples.ts"
import { project_a, share_a, trust_a } from "./ports.ts"
import type { Client } from "./served.ts"
import { register, run } from "./transitions.ts"

export const owner = { token: "owner" }
export const admin = { token: "admin" }
export const tenant_b = { token: "tenant_b" }

export const secrets = { access_key: secretRef(1), secret_key: secretRef(2) }

/** Shape A: a target with everything that its enrollment needs. */
export const bucket = {
  name: "Backups",
  endpoint: "https://s3.example.org",
  bucket: "backups",
  trust_id: trust_a,
  vault_secret_map: secrets,
}

/** Shape B. */
export const template = {
  name: "The domain's S3",
  endpoint: "https://s3.example.org",
  bucket_scheme: "per_project",
}
export const bucketOf = (template_id: string) => ({
  bucket_name: "backups",
  template_id,
  project_id: project_a,
  trust_id: trust_a,
  s3_access_key_ref: secretRef(1),
  s3_secret_key_ref: secretRef(2),
})

export const policyOf = (target_id: string) => ({
  name: "Nightly",
  share_id: share_a,
  target_id,
  schedule: "0 2 * * *",
  retention: { keep_last: 3 },
})

export const unknown_id = "01990000-0000-7000-8000-000000000000"

/** Creates a resource from this body and returns it. */
export const made = Effect.fnUntraced(function* (
  ask: Client,
  path: string,
  body: unknown,
  token = "tenant",
) {
  const answer = yield* ask("POST", path, body, { token })
  assert.include([201, 202], answer.status, answer.text)
  return answer.body
})

/** Shape A: the id of a target that a worker has enrolled; its lease has had one hold. */
export const available = Effect.fnUntraced(function* (ask: Client, more: object = {}) {
  const { target, job } = yield* made(ask, "/v1/targets", { ...bucket, ...more })
  yield* register()
  yield* run(job.id, 1)
  return String(target.id)
})

/** Shape A: a restorable backup in an enrolled target. */
export const backedUp = Effect.fnUntraced(function* (
  ask: Client,
  { snapshot = {}, policy = false }: { snapshot?: object; policy?: boolean } = {},
) {
  const target_id = yield* available(ask)
  const policy_id = policy
    ? String((yield* made(ask, "/v1/policies", policyOf(target_id))).id)
    : null
  const { backup, job } = yield* made(ask, "/v1/backups", {
    share_id: share_a,
    target_id,
    policy_id,
  })
  yield* run(job.id, 2, snapshot)
  return { target_id, policy_id, backup_id: String(backup.id), job_id: String(job.id) }
})
