/**
 * Real backups: the program as a user starts it, its own worker, the engine and an S3 server. No
 * part is simulated.
 */
import assert from "node:assert/strict"
import { createHash, randomBytes } from "node:crypto"
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { join, relative } from "node:path"
import { ListObjectsV2Command } from "@aws-sdk/client-s3"
import { Effect, Redacted } from "effect"
import { afterAll, beforeAll, expect, it } from "vitest"
import type { Bucket } from "#actors/share-protection/ports/buckets.ts"
import { describeWithRadosgw, s3Client, startRadosgw } from "../../world/programs/radosgw.ts"
import { connect } from "../../world/server/client.ts"
import { auditEvents } from "../../world/server/history.ts"
import {
  childrenOf,
  cleanUp,
  end,
  isRunning,
  newFolder,
  type Server,
  startServer,
  until,
} from "../../world/server/server.ts"
import { passwordOf } from "../../world/server/share-repository.ts"
import {
  agentsOf,
  enroll,
  type Job,
  shareFolder,
  step_ms_max,
  type Tenant,
  tenantOf,
} from "../../world/server/share-tenant.ts"

const files = 300
const file_bytes = 3_000
const stop_ms_max = 10_000
/** Slow enough that a test can interrupt a backup of `large_bytes`. */
const upload_kib_per_second = 2_500
const large_bytes = 8_000_000

const settings = {
  ALMANAC_CONDUCTOR__WORKER_HEARTBEAT_DEADLINE_SECONDS: "3",
  ALMANAC_CONDUCTOR__WORKER_BOOT_COOLDOWN_SECONDS: "0",
  ALMANAC_ENGINE__UPLOAD_KIB_PER_SECOND: String(upload_kib_per_second),
}

/** The hash of each file below the folder, by its path. */
const hashes = (folder: string) =>
  Object.fromEntries(
    readdirSync(folder, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map(({ parentPath, name }) => join(parentPath, name))
      .map((path) => [
        relative(folder, path),
        createHash("sha256").update(readFileSync(path)).digest("hex"),
      ]),
  )

/** Files below the folder that contain this text. */
const holders = (root: string, text: string) =>
  readdirSync(root, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map(({ parentPath, name }) => join(parentPath, name))
    .filter((path) => existsSync(path) && readFileSync(path).includes(text))

describeWithRadosgw("a server with its own worker", () => {
  let s3: Awaited<ReturnType<typeof startRadosgw>>
  let server: Server
  let tenant: Tenant
  let bucket: Bucket
  let target_id: string
  let folder: string
  let share_id: string

  const backUp = async () => {
    const { backup } = await tenant.made("/v1/backups", { share_id, target_id })
    assert(backup !== undefined)
    return backup
  }

  beforeAll(async () => {
    s3 = await startRadosgw()
    server = await startServer(newFolder(), settings)
    tenant = tenantOf(server)
    share_id = server.credentials.tenant.share_id
    folder = shareFolder(server, tenant, share_id)
    bucket = await s3.newBucket()
    target_id = await enroll(server, tenant, bucket)
  }, 2 * step_ms_max)

  afterAll(async () => {
    tenant?.close()
    await cleanUp()
    await s3?.close()
  }, step_ms_max)

  it(
    "backs a share up, then what changed of it, and restores it bit for bit",
    async () => {
      mkdirSync(join(folder, "deep", "er"), { recursive: true })
      for (let n = 0; n < files; n++) {
        const name = n % 3 === 0 ? `deep/er/f-${n}` : `f-${n}.bin`
        writeFileSync(join(folder, name), randomBytes(n === 0 ? 0 : file_bytes))
      }
      const first = await tenant.available(`/v1/backups/${(await backUp()).id}`)
      expect(first).toMatchObject({ partial: false, crash_consistent: true })
      expect(first.files).toBeGreaterThanOrEqual(files)

      writeFileSync(join(folder, "f-1.bin"), "changed")
      rmSync(join(folder, "f-2.bin"))
      const second = await tenant.available(`/v1/backups/${(await backUp()).id}`)
      expect(second.files).toBe(first.files - 1)
      expect(second.stored_bytes).toBeLessThan(first.stored_bytes / 10)

      const before = hashes(folder)
      const body = { backup_id: second.id, mode: "new_share" }
      const { restore } = await tenant.made("/v1/restores", body)
      const { new_share_id } = await tenant.available(`/v1/restores/${restore?.id}`)
      const restored = hashes(shareFolder(server, tenant, new_share_id))
      expect(Object.keys(restored).length).toBeGreaterThan(files - 10)
      expect(restored).toEqual(before)
    },
    3 * step_ms_max,
  )

  it(
    "ends the job of a worker that is killed, and takes the next one by another",
    async () => {
      writeFileSync(join(folder, "large.bin"), randomBytes(large_bytes))
      const { id, job_id } = await backUp()
      const job = (): Promise<Job> => tenant.request("GET", `/v1/jobs/${job_id}`)
      await until(
        "the engine runs",
        step_ms_max,
        async () => (await job()).state === "transferring",
      )
      const [agent] = agentsOf(server)
      assert(agent !== undefined)
      const killed = (await job()).worker_id
      end(agent)
      const buried = await until("the job's end", step_ms_max, async () => {
        const now = await job()
        return now.state === "error" && now
      })
      expect(buried.error?.code).toBe("svc.worker_unavailable")
      expect(await tenant.request("GET", `/v1/backups/${id}`)).toMatchObject({ status: "error" })

      await until("another worker", step_ms_max, async () => {
        const all = await tenant.workers()
        const dead = all.some((worker) => worker.id === killed && worker.state === "dead")
        return dead && all.some(({ state }) => state === "ready")
      })
      await tenant.available(`/v1/backups/${(await backUp()).id}`)
    },
    4 * step_ms_max,
  )

  it(
    "keeps its secrets out of every file, argument, log line and event",
    async () => {
      const { trust_id, repository_password_ref } = await tenant.request(
        "GET",
        `/v1/targets/${target_id}`,
      )
      const opened = passwordOf(server.data_dir, trust_id, repository_password_ref)
      const password = await Effect.runPromise(opened)
      const secrets = [bucket.access_key, bucket.secret_key, password].map(Redacted.value)
      writeFileSync(join(folder, "secret.bin"), randomBytes(large_bytes))
      const { id } = await backUp()
      const engines = await until("the engine", step_ms_max, () => {
        const found = agentsOf(server).flatMap(childrenOf)
        return found.length > 0 && found
      })
      const argumentsOf = (pid: number) => readFileSync(`/proc/${pid}/cmdline`, "utf8")
      const words = [server.pid, ...childrenOf(server.pid), ...engines].map(argumentsOf).join("\n")
      expect(words).toContain("backup")
      await tenant.available(`/v1/backups/${id}`)

      const admin = connect(server.url, server.credentials.admin.token)
      const message =
        JSON.stringify(await auditEvents(admin, [])) + Object.values(server.printed).join()
      admin.close()
      expect(message).toContain(target_id)
      expect(holders(server.data_dir, tenant.token)).not.toEqual([])
      for (const secret of secrets) {
        expect(secret.length).toBeGreaterThan(10)
        expect(holders(server.data_dir, secret)).toEqual([])
        assert(!words.includes(secret), "a secret is in the arguments of a process")
        assert(!message.includes(secret), "a secret is in an event or the log")
      }
    },
    3 * step_ms_max,
  )

  it(
    "leaves what is in the bucket when its target is deleted",
    async () => {
      const other = await s3.newBucket()
      const other_id = await enroll(server, tenant, other)
      const client = s3Client(s3)
      const list = new ListObjectsV2Command({ Bucket: other.bucket })
      const before = await client.send(list)
      expect(before.KeyCount).toBeGreaterThan(0)
      await tenant.gone(`/v1/targets/${other_id}`)
      expect((await client.send(list)).Contents).toEqual(before.Contents)
      client.destroy()
    },
    2 * step_ms_max,
  )

  it(
    "stops its workers and their engines with itself",
    async () => {
      writeFileSync(join(folder, "larger.bin"), randomBytes(large_bytes))
      const { job_id } = await backUp()
      await until("the engine runs", step_ms_max, async () => {
        return (await tenant.request("GET", `/v1/jobs/${job_id}`)).state === "transferring"
      })
      const agents = agentsOf(server)
      const engines = await until("the engine", step_ms_max, () => {
        const found = agents.flatMap(childrenOf)
        return found.length > 0 && found
      })
      const since = performance.now()
      expect(await server.stop()).toEqual({ code: 0, signal: null })
      expect(performance.now() - since).toBeLessThan(stop_ms_max)
      expect([...agents, ...engines].filter(isRunning)).toEqual([])
    },
    2 * step_ms_max,
  )
})
