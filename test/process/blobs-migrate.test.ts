/** Blobs of an earlier version: refused by the server in one line, migrated by the verb, served. */
import { readdirSync } from "node:fs"
import { join } from "node:path"
import { afterAll, expect, it } from "vitest"
import { plainStore } from "../adapters/plain-store.ts"
import { noise } from "../contract/blob-store-bytes.ts"
import { describeWithServer } from "../nats.ts"
import { cleanUp, newFolder, runVerb, type Server, startServer, until } from "./server.ts"

const timeout_ms = 180_000
/** From a put to its fact in the log, on a machine that does several things at once. */
const recorded_ms_max = 20_000

const services = { ALMANAC_SERVICES: '["blob-storage","carrier-search"]' }

afterAll(cleanUp)

const makeStore = (dir: string) => {
  const store = plainStore(dir)
  for (const seed of [1, 2, 3]) store.put(noise(seed, 400_000 * seed), { seed: `${seed}` })
  const id = store.put(noise(4, 10))
  const gone = store.put(noise(5, 10))
  store.delete(gone)
  store.close()
  return { id, gone }
}

const get = (server: Server, path: string, token: string) =>
  fetch(`${server.url}${path}`, {
    headers: { authorization: `Bearer ${token}`, accept: "application/octet-stream" },
  })

/** The log's events of the node's blobs, as `type id`. */
const audited = async (server: Server): Promise<ReadonlyArray<string>> => {
  const path = "/v1/admin/audit?service=blob-storage&limit=1000"
  const headers = { authorization: `Bearer ${server.credentials.admin.token}` }
  const answer = await fetch(`${server.url}${path}`, { headers })
  expect(answer.status).toBe(200)
  const { events } = await answer.json()
  // Only the type is looked at, of what the audit's own tests know the form of.
  return (events as ReadonlyArray<{ readonly type: string }>).map(({ type }) => type)
}

const count = (types: ReadonlyArray<string>, type: string) =>
  types.filter((one) => one === type).length

describeWithServer("a server on blobs of an earlier version", () => {
  it(
    "says what to run, is served without them, and has them all once that has run",
    async () => {
      const data_dir = newFolder()
      const { id, gone } = makeStore(join(data_dir, "blobs"))
      const before = await startServer(data_dir, services)
      const ready = await (await fetch(`${before.url}/readyz`)).text()
      expect(ready).toMatch(/^blob-storage could not start: .*`almanac blobs migrate`/m)
      expect(ready).toMatch(/^carrier-search ok/m)
      const refused = await get(before, `/v1/blobs/${id}`, before.credentials.blob.token)
      expect(refused.status).toBe(503)
      const beside = await runVerb(data_dir, ["blobs", "migrate"])
      expect([beside.code, beside.stderr]).toEqual([1, expect.stringContaining("stop it first")])
      await before.stop()

      const migrated = await runVerb(data_dir, ["blobs", "migrate"])
      expect(migrated.stderr).toBe("")
      expect(migrated.stdout).toBe("4 blobs migrated, 0 set aside as damaged\n")
      expect(migrated.code).toBe(0)
      expect(readdirSync(join(data_dir, "blobs"))).toEqual(["volume"])
      const again = await runVerb(data_dir, ["blobs", "migrate"])
      expect([again.code, again.stdout]).toEqual([0, expect.stringContaining("nothing to migrate")])

      const server = await startServer(data_dir, services)
      const token = server.credentials.blob.token
      const answer = await get(server, `/v1/blobs/${id}`, token)
      expect(Buffer.from(await answer.arrayBuffer()).equals(noise(4, 10))).toBe(true)
      expect((await get(server, `/v1/blobs/${gone}`, token)).status).toBe(404)
      const put = await fetch(`${server.url}/v1/blobs/stream`, {
        method: "POST",
        headers: { authorization: `Bearer ${token}`, "content-type": "application/octet-stream" },
        body: Buffer.from("new"),
      })
      expect(put.status).toBe(200)
      const types = await until("the new fact", recorded_ms_max, async () => {
        const types = await audited(server)
        return count(types, "BlobStored") > 5 && types
      })
      expect(count(types, "BlobStored")).toBe(6)
      expect(count(types, "BlobDeleted")).toBe(1)
      const headers = { authorization: `Bearer ${server.credentials.admin.token}` }
      const metrics = await (await fetch(`${server.url}/metrics`, { headers })).text()
      expect(metrics).toMatch(/^almanac_volume_blobs 5$/m)
      expect(metrics).toMatch(/^# HELP almanac_volume_live_bytes \w/m)
      await server.stop()
      const verified = await runVerb(data_dir, ["audit", "verify"])
      expect([verified.code, verified.stdout]).toEqual([0, expect.stringMatching(/^whole:/)])
    },
    timeout_ms,
  )
})
