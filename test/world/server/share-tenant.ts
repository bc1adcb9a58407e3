/** A tenant of a server that makes real backups: its requests, and the results that it sees. */
import assert from "node:assert/strict"
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { Redacted } from "effect"
import type { Bucket } from "#actors/share-protection/ports/buckets.ts"
import { connect } from "./client.ts"
import { childrenOf, outputOf, type Server, until } from "./server.ts"

/** Longer than any step takes on a machine that runs several tasks at once. */
export const step_ms_max = 60_000

export interface Resource {
  readonly id: string
  readonly status: string
  readonly job_id: string
  readonly reason?: string
}

export interface Job {
  readonly state: string
  readonly attempt: number
  readonly worker_id: string
  readonly error: { readonly code: string; readonly detail: string } | null
}

interface Made {
  readonly target?: Resource
  readonly backup?: Resource
  readonly restore?: Resource
}

interface Workers {
  readonly workers: ReadonlyArray<{ readonly id: string; readonly state: string }>
}

/** A tenant whose trust, secrets and share exist. */
export const tenantOf = (server: Server) => {
  const { tenant, admin } = server.credentials
  const [mine, operator] = [connect(server.url, tenant.token), connect(server.url, admin.token)]
  const request = async (method: string, path: string, body?: object) => {
    const text = body === undefined ? {} : { body: JSON.stringify(body) }
    const headers = { "content-type": "application/json", "x-auth-token": tenant.token }
    const answer = await mine.ask(method, path, { headers, ...text })
    assert(answer.status < 300, `${method} ${path}: ${answer.status} ${answer.body}`)
    return JSON.parse(answer.body.toString())
  }
  const made = (path: string, body: object): Promise<Made> => request("POST", path, body)
  /** Waits until the resource is available; fails on an error state. */
  const available = (path: string) =>
    until(`${path} available:\n${outputOf(server)}`, step_ms_max, async () => {
      const found = await request("GET", path)
      assert.notEqual(found.status, "error", `${path}: ${found.reason}\n${outputOf(server)}`)
      return found.status === "available" && found
    })
  const gone = async (path: string) => {
    const answer = await mine.ask("DELETE", path, { headers: { "x-auth-token": tenant.token } })
    assert.equal(answer.status, 204, `DELETE ${path}: ${answer.body}`)
  }
  const job = (id: string): Promise<Job> => request("GET", `/v1/jobs/${id}`)
  const headers = { "x-auth-token": admin.token }
  const workers = async () =>
    (await operator.json<Workers>("GET", "/v1/admin/workers", undefined, headers)).workers
  /** Starts a job with exclusive access to the repository; returns its id. */
  const upgrade = async (target_id: string) => {
    const path = `/v1/admin/targets/${target_id}/repo-format-upgrade`
    const { status, body } = await operator.ask("POST", path, { headers })
    assert.equal(status, 202, `${path}: ${body}`)
    return String(JSON.parse(body.toString()).job.id)
  }
  const close = () => {
    mine.close()
    operator.close()
  }
  return { ...tenant, request, made, available, gone, job, workers, upgrade, close }
}

export type Tenant = ReturnType<typeof tenantOf>

/** Stores a secret as an operator on this machine does, and returns its href. */
const keepSecret = async (server: Server, project_id: string, payload: string) => {
  const path = join(server.data_dir, "run", "instance.json")
  const { control_token } = JSON.parse(readFileSync(path, "utf8"))
  const client = connect(server.url, control_token)
  const headers = { "content-type": "application/json" }
  const body = JSON.stringify({ project_id, payload })
  const answer = await client.ask("POST", "/v1/admin/secrets", { headers, body })
  client.close()
  return String(JSON.parse(answer.body.toString()).href)
}

/** Registers the bucket as a target, and waits until it is enrolled. */
export const enroll = async (server: Server, tenant: Tenant, bucket: Bucket) => {
  const { endpoint, addressing_mode, access_key, secret_key } = bucket
  const keep = (secret: Redacted.Redacted<string>) =>
    keepSecret(server, tenant.project_id, Redacted.value(secret))
  const { target } = await tenant.made("/v1/targets", {
    name: bucket.bucket,
    endpoint,
    bucket: bucket.bucket,
    addressing_mode,
    trust_id: server.credentials.tenant.trust_id,
    vault_secret_map: { access_key: await keep(access_key), secret_key: await keep(secret_key) },
  })
  assert(target !== undefined)
  await tenant.available(`/v1/targets/${target.id}`)
  return target.id
}

export const shareFolder = (
  { data_dir }: Server,
  { project_id }: Pick<Tenant, "project_id">,
  share_id: string,
) => join(data_dir, "shares", project_id, share_id)

/** The worker processes that a server started. */
export const agentsOf = (server: Server) =>
  childrenOf(server.pid).filter((pid) =>
    // The suffix depends on whether the bundle or the sources run.
    readFileSync(`/proc/${pid}/cmdline`, "utf8").includes("agent-process."),
  )
