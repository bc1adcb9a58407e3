/** A repository's format while workers of two images run: real workers, restic and an S3 server. */
import assert from "node:assert/strict"
import { afterAll, beforeAll, expect, it } from "vitest"
import { describeWithRadosgw, startRadosgw } from "../../world/programs/radosgw.ts"
import { connect } from "../../world/server/client.ts"
import {
  cleanUp,
  newFolder,
  type Server,
  startServer,
  startVerb,
  until,
} from "../../world/server/server.ts"
import { enroll, step_ms_max, type Tenant, tenantOf } from "../../world/server/share-tenant.ts"

const other_image = "another-image"

describeWithRadosgw("the format of a repository", () => {
  let s3: Awaited<ReturnType<typeof startRadosgw>>
  let server: Server
  let tenant: Tenant
  let target_id: string

  beforeAll(async () => {
    s3 = await startRadosgw()
    server = await startServer(newFolder(), {
      ALMANAC_CONDUCTOR__WORKER_HEARTBEAT_DEADLINE_SECONDS: "3",
    })
    tenant = tenantOf(server)
    target_id = await enroll(server, tenant, await s3.newBucket())
  }, 2 * step_ms_max)

  afterAll(async () => {
    tenant?.close()
    await cleanUp()
    await s3?.close()
  }, step_ms_max)

  const workersThat = (is_so: (state: string) => boolean, count: number) =>
    until(`${count} workers`, step_ms_max, async () => {
      const found = (await tenant.workers()).filter(({ state }) => is_so(state))
      return found.length === count
    })

  it(
    "is not raised while workers of two images run, and is when the other has gone",
    async () => {
      await workersThat((state) => state === "ready", 1)
      const agent = startVerb(server.data_dir, ["agent", "--image", other_image])
      await workersThat((state) => state === "ready", 2)

      const operator = connect(server.url, server.credentials.admin.token)
      const path = `/v1/admin/targets/${target_id}/repo-format-upgrade`
      const headers = { "x-auth-token": server.credentials.admin.token }
      const { status, body } = await operator.ask("POST", path, { headers })
      operator.close()
      expect(status).toBe(409)
      const refusal = JSON.parse(body.toString())
      expect(refusal.code).toBe("svc.conflict")
      expect(refusal.detail).toMatch(/^MixedFleetBackupEngineFormatUnsafe\b/)
      expect(refusal.detail).toContain(other_image)

      agent.child.kill("SIGTERM")
      await agent.ended
      await workersThat((state) => state === "ready", 1)
      const job_id = await tenant.upgrade(target_id)
      const ended = await until("the upgrade", step_ms_max, async () => {
        const job = await tenant.job(job_id)
        return (job.state === "available" || job.state === "error") && job
      })
      assert.equal(ended.state, "available", JSON.stringify(ended.error))
      expect((await tenant.request("GET", `/v1/targets/${target_id}`)).status).toBe("available")
    },
    5 * step_ms_max,
  )
})
