/** Almanac in the backup suite: the whole server with one agent, used over HTTP. */
import { randomUUID } from "node:crypto"
import { mkdir, readFile } from "node:fs/promises"
import { join } from "node:path"
import { setTimeout as pause } from "node:timers/promises"
import { startGateway } from "../gateway/almanac-gateway.ts"
import type { Place } from "./backup-places.ts"

interface Job {
  readonly id: string
  readonly state: string
  readonly started_at: string
  readonly finished_at: string
  readonly error: unknown
}

interface Tenant {
  readonly token: string
  readonly project_id: string
  readonly trust_id: string
}

/**
 * Milliseconds between two polls of a job; the job's own timestamps are measured, not these polls.
 */
const look_ms = 50

const secondsOf = ({ started_at, finished_at }: Job) =>
  (Date.parse(finished_at) - Date.parse(started_at)) / 1000

/** Sends JSON requests to the server at `url`; throws on an error response. */
export const asking =
  (url: string, token: string) =>
  async <A>(path: string, body?: object) => {
    const response = await fetch(new URL(path, url), {
      method: body === undefined ? "GET" : "POST",
      headers: { "x-auth-token": token, "content-type": "application/json" },
      ...(body && { body: JSON.stringify(body) }),
    })
    const text = await response.text()
    if (!response.ok) throw new Error(`${path} answered ${response.status}: ${text}`)
    // The server's own documents; a missing field fails the run.
    return JSON.parse(text) as A
  }

/** Starts the server; the caller fills the folder `share` before the first backup. */
export const startAlmanac = async (folder: string) => {
  const { url, token, stop } = await startGateway(folder, {
    ALMANAC_SERVICES: '["share-protection"]',
  })
  const credentials = JSON.parse(await readFile(join(folder, "dev-credentials.json"), "utf8"))
  const tenant: Tenant = credentials.tenant
  const ask = asking(url, tenant.token)
  const askAdmin = asking(url, token)
  const share_id = randomUUID()
  const shares = join(folder, "shares", tenant.project_id)
  const share = join(shares, share_id)
  await mkdir(share, { recursive: true })

  const ended = async ({ id }: Job): Promise<Job> => {
    for (;;) {
      const job = await ask<Job>(`jobs/${id}`)
      if (job.state === "available") return job
      if (job.state === "error") throw new Error(`a job failed: ${JSON.stringify(job.error)}`)
      await pause(look_ms)
    }
  }
  const secret = async (payload: string) => {
    const body = { project_id: tenant.project_id, payload }
    return (await askAdmin<{ href: string }>("admin/secrets", body)).href
  }
  /** An enrolled target in this place. */
  const enroll = async ({ endpoint, bucket, access_key, secret_key }: Place) => {
    const { target, job } = await ask<{ target: { id: string }; job: Job }>("targets", {
      name: bucket,
      endpoint,
      bucket,
      trust_id: tenant.trust_id,
      vault_secret_map: {
        access_key: await secret(access_key),
        secret_key: await secret(secret_key),
      },
    })
    await ended(job)
    return target.id
  }
  /** Runs a backup; returns the seconds from the job's start to its end. */
  const backUp = async (target_id: string) => {
    const body = { share_id, target_id, crash_consistent: false }
    const { backup, job } = await ask<{ backup: { id: string }; job: Job }>("backups", body)
    return { backup_id: backup.id, seconds: secondsOf(await ended(job)) }
  }
  /** Restores into a new share; returns the seconds and the share's folder. */
  const restore = async (backup_id: string) => {
    const { restore, job } = await ask<{ restore: { id: string }; job: Job }>("restores", {
      backup_id,
    })
    const seconds = secondsOf(await ended(job))
    const { new_share_id } = await ask<{ new_share_id: string }>(`restores/${restore.id}`)
    return { path: join(shares, new_share_id), seconds }
  }
  return { share, enroll, backUp, restore, stop }
}
