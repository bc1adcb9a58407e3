/**
 * Total loss: a server with work of all five services is backed up while clients use it, continues,
 * and is killed and loses its data folder. The restored state is the state at the manifest's
 * position.
 */
import assert from "node:assert/strict"
import { randomBytes } from "node:crypto"
import { cpSync, readdirSync, rmSync, writeFileSync } from "node:fs"
import { createServer } from "node:http"
import { join } from "node:path"
import sharp from "sharp"
import { afterAll, beforeAll, expect, it } from "vitest"
import { drawLeaf } from "#trainer"
import { describeWithRadosgw, startRadosgw } from "../../world/programs/radosgw.ts"
import { getBlob, hashed, putBlob } from "../../world/server/blob-client.ts"
import { connect } from "../../world/server/client.ts"
import {
  cleanUp,
  end,
  newFolder,
  outputOf,
  runVerb,
  type Server,
  startScript,
  startServer,
  until,
} from "../../world/server/server.ts"
import {
  agentsOf,
  enroll,
  step_ms_max,
  type Tenant,
  tenantOf,
} from "../../world/server/share-tenant.ts"

const settings = {
  ALMANAC_CONDUCTOR__WORKER_HEARTBEAT_DEADLINE_SECONDS: "3",
  ALMANAC_CONDUCTOR__WORKER_BOOT_COOLDOWN_SECONDS: "0",
  ALMANAC_ENGINE__UPLOAD_KIB_PER_SECOND: "500",
  ALMANAC_WEBHOOKS__ALLOW_HTTP: "true",
  ALMANAC_WEBHOOKS__ALLOWED_NETWORKS: "127.0.0.0/8",
  ALMANAC_AUDIT__CHECKPOINT_SECONDS: "1",
}

/** Large enough that, at the speed above, its backup still runs during the backup of state. */
const large_bytes = 8_000_000

const leaf_side = 256

/** The output of a command, which must succeed. */
const verb = async (folder: string, ...args: ReadonlyArray<string>) => {
  const { code, stdout, stderr } = await runVerb(folder, args, settings)
  assert.equal(code, 0, `${args.join(" ")}: ${stdout}${stderr}`)
  return stdout
}

/** The commits up to a position, one per line. */
const replayed = (folder: string, last: number) =>
  verb(folder, "audit", "replay", "--last", String(last))

/** A webhook subscriber that counts the deliveries of each event. */
const subscriber = async () => {
  const deliveries = new Map<string, number>()
  const server = createServer((request, response) => {
    const parts: Array<Buffer> = []
    request.on("data", (part: Buffer) => parts.push(part))
    request.on("end", () => {
      const { id } = JSON.parse(Buffer.concat(parts).toString())
      deliveries.set(id, (deliveries.get(id) ?? 0) + 1)
      response.end()
    })
  })
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  const address = server.address()
  assert(address !== null && typeof address === "object")
  return { deliveries, url: `http://127.0.0.1:${address.port}/`, close: () => server.close() }
}

/** One carrier search and one prediction: facts that go through a spool. */
const sendRequest = async (server: Server) => {
  const raw = { width: leaf_side, height: leaf_side, channels: 3 } as const
  const leaf = await sharp(drawLeaf(0, 7, leaf_side), { raw })
    .jpeg()
    .toBuffer()
  const form = new FormData()
  form.append("file", new Blob([Uint8Array.from(leaf)], { type: "image/jpeg" }), "leaf.jpg")
  const answers = [
    await fetch(`${server.url}/api/search?start=100000&end=100020`),
    await fetch(`${server.url}/predict`, { method: "POST", body: form }),
  ]
  assert.deepEqual(
    answers.map(({ status }) => status),
    [200, 200],
  )
}

/** The blobs that are stored according to the audit. */
const blobsStored = async (server: Server) => {
  const client = connect(server.url, server.credentials.admin.token)
  const { events } = await client.json<{ events: ReadonlyArray<{ subject: string }> }>(
    "GET",
    "/v1/admin/audit?type=BlobStored",
  )
  client.close()
  return events.map(({ subject }) => subject)
}

/**
 * Kills the restore after its first step, among the files, and once the log is open; then no server
 * starts.
 */
const killedWhileRestored = async (folder: string, from: string) => {
  for (const step of [1, 4, 20]) {
    const child = startScript(folder, [
      "test/process/state/state-child.ts",
      folder,
      from,
      String(step),
    ])
    const { signal } = await child.ended
    if (/^steps \d+$/m.test(child.printed.stdout)) return
    assert.equal(signal, "SIGKILL", outputOf(child))
    const { code, stderr } = await runVerb(folder, ["log", "show"], settings)
    assert.notEqual(code, 0)
    assert.match(stderr, /was not finished/)
  }
}

/** Waits until the audit has an event of each of these types. */
const recorded = async (server: Server, types: ReadonlyArray<string>) => {
  const client = connect(server.url, server.credentials.admin.token)
  for (const type of types) {
    await until(`${type} in the audit`, step_ms_max, async () => {
      const { events } = await client.json<{ events: ReadonlyArray<unknown> }>(
        "GET",
        `/v1/admin/audit?type=${type}`,
      )
      return events.length > 0
    })
  }
  client.close()
}

describeWithRadosgw("a server that loses everything", () => {
  let s3: Awaited<ReturnType<typeof startRadosgw>>
  let hook: Awaited<ReturnType<typeof subscriber>>

  beforeAll(async () => {
    s3 = await startRadosgw()
    hook = await subscriber()
  }, 2 * step_ms_max)

  afterAll(async () => {
    hook?.close()
    await cleanUp()
    await s3?.close()
  }, step_ms_max)

  it(
    "is what it was at the backup's position, and goes on from there",
    async () => {
      const folder = newFolder()
      const to = join(newFolder(), "state")
      await verb(folder, "carriers", "import", "--demo")
      const first = await startServer(folder, settings)
      const credentials = first.credentials
      const tenant = tenantOf(first)
      const { share_id } = credentials.tenant
      const operator = connect(first.url, credentials.admin.token)
      const { id: hook_id } = await made(operator, { url: hook.url, description: "test" })
      const target_id = await enroll(first, tenant, await s3.newBucket())
      const { backup } = await tenant.made("/v1/backups", { share_id, target_id })
      const whole = await tenant.available(`/v1/backups/${backup?.id}`)
      await verb(folder, "ingest", "--demo")
      await sendRequest(first)
      const blobs = connect(first.url, credentials.blob.token)
      const bytes = Buffer.from("kept")
      expect((await putBlob(blobs, bytes, "raw")).status).toBe(200)
      await recorded(first, ["BlobStored", "CarrierSearchCompleted", "PredictionMade"])

      // A job that runs while the backup is made.
      writeFileSync(
        join(folder, "shares", tenant.project_id, share_id, "large.bin"),
        randomBytes(large_bytes),
      )
      const running = (await tenant.made("/v1/backups", { share_id, target_id })).backup
      assert(running !== undefined)
      await until(
        "the engine runs",
        step_ms_max,
        async () => (await tenant.job(running.job_id)).state === "transferring",
      )
      const result = await verb(folder, "backup-state", "--to", to)
      const last = Number(/position (\d+)/.exec(result)?.[1])
      const full = await runVerb(folder, ["restore-state", "--from", to], settings)
      expect([full.code, full.stdout]).toEqual([1, ""])
      expect(full.stderr).toContain("is not empty")
      const before = await replayed(folder, last)

      // The backup does not contain this blob's event, so it is lost.
      const lost = Buffer.from("not in the backup")
      expect((await putBlob(blobs, lost, "raw")).status).toBe(200)
      await until("the lost blob's fact", step_ms_max, async () => {
        const { position } = JSON.parse(await verb(folder, "log", "show", "--json"))
        return position > last
      })
      const agents = agentsOf(first)
      const events_before = [...hook.deliveries.keys()]
      for (const client of [tenant, operator, blobs]) client.close()
      await first.killAll()
      for (const pid of agents) end(pid)
      const disks = newFolder()
      for (const name of ["shares", "blobs"]) {
        cpSync(join(folder, name), join(disks, name), { recursive: true })
      }
      rmSync(folder, { recursive: true })

      await killedWhileRestored(folder, to)
      expect(await verb(folder, "restore-state", "--from", to)).toContain(`position ${last}`)
      expect(await replayed(folder, last)).toBe(before)
      // Shares and blobs have separate backups.
      cpSync(disks, folder, { recursive: true })
      const second = await startServer(folder, settings)
      await goesOn(second, { credentials, whole_id: whole.id, running, target_id, hook_id })
      const reader = connect(second.url, credentials.blob.token)
      for (const bytes of [Buffer.from("kept"), lost]) {
        expect(await getBlob(reader, hashed(bytes).id, "raw")).toEqual(bytes)
      }
      reader.close()
      expect(await blobsStored(second)).toEqual([...new Set(await blobsStored(second))])
      // Events at positions of lost commits have new ids.
      const later = [...hook.deliveries.keys()].filter((id) => Number(id.split(".")[0]) > last)
      const anew = later.filter((id) => !events_before.includes(id))
      expect(anew.length).toBeGreaterThan(0)
      expect(anew.filter((id) => !/^\d+\.\d+\.[\da-f-]{36}$/.test(id))).toEqual([])
      // No delivered event is delivered again, except one that was in transit.
      const doubled = events_before.filter((id) => (hook.deliveries.get(id) ?? 0) > 1)
      expect(doubled.length).toBeLessThanOrEqual(1)
      await second.stop()
      expect(await verb(folder, "audit", "verify")).toMatch(/^intact: /)
      expect(await verb(folder, "rebuild", "--diff")).not.toContain("differs")
      expect(readdirSync(folder)).not.toContain("restoring.json")
    },
    10 * step_ms_max,
  )
})

const made = async (operator: ReturnType<typeof connect>, hook: object) => {
  const headers = { "content-type": "application/json" }
  const body = JSON.stringify(hook)
  const answer = await operator.ask("POST", "/v1/webhooks", { headers, body })
  assert.equal(answer.status, 201, answer.body.toString())
  return JSON.parse(answer.body.toString())
}

interface Known {
  readonly credentials: Server["credentials"]
  readonly whole_id: string
  readonly running: { readonly id: string; readonly job_id: string }
  readonly target_id: string
  readonly hook_id: string
}

/**
 * The same tokens work, secrets can be read, the running job ends, and new work takes effect once.
 */
const goesOn = async (
  server: Server,
  { credentials, whole_id, running, target_id, hook_id }: Known,
) => {
  expect(server.credentials.tenant).toEqual(credentials.tenant)
  const tenant: Tenant = tenantOf(server)
  expect(await tenant.request("GET", `/v1/backups/${whole_id}`)).toMatchObject({
    status: "available",
  })
  // No process redoes external work that was in progress: the job is reported as lost, and its hold
  // is released.
  const lost = await until("the job's end", 2 * step_ms_max, async () => {
    const job = await tenant.job(running.job_id)
    return job.state === "error" && job
  })
  expect(lost.error?.code).toBe("svc.worker_unavailable")
  const { share_id } = credentials.tenant
  const again = (await tenant.made("/v1/backups", { share_id, target_id })).backup
  await tenant.available(`/v1/backups/${again?.id}`)
  const restore = { backup_id: whole_id, mode: "new_share" }
  const { restore: begun } = await tenant.made("/v1/restores", restore)
  await tenant.available(`/v1/restores/${begun?.id}`)

  const blobs = connect(server.url, credentials.blob.token)
  const bytes = Buffer.from("new")
  expect((await putBlob(blobs, bytes, "raw")).status).toBe(200)
  const { id } = hashed(bytes)
  const operator = connect(server.url, credentials.admin.token)
  await until("the new blob's event", step_ms_max, async () => {
    const { events } = await operator.json<{ events: ReadonlyArray<{ subject: string }> }>(
      "GET",
      "/v1/admin/audit?type=BlobStored",
    )
    return events.some(({ subject }) => subject === id)
  })
  const hook = await operator.json<{ status: string }>("GET", `/v1/webhooks/${hook_id}`)
  expect(hook).toMatchObject({ id: hook_id })
  for (const client of [tenant, blobs, operator]) client.close()
}
