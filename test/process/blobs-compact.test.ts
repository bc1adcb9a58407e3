/**
 * `almanac blobs compact`: next to a running server, on a server given by URL, and without a
 * server.
 */
import { readdirSync, statSync } from "node:fs"
import { join } from "node:path"
import { afterAll, expect, it } from "vitest"
import { noise } from "../contract/blob-storage/engine-bytes.ts"
import { idOf } from "../contract/blob-storage/node-engine-copies.ts"
import { describeWithServer } from "../world/programs/nats.ts"
import { cleanUp, newFolder, runVerb, type Server, startServer } from "../world/server/server.ts"

const timeout_ms = 180_000
const mib = 2 ** 20
const settings = {
  ALMANAC_SERVICES: '["blob-storage"]',
  ALMANAC_BLOB__SEGMENT_BYTES: String(8 * mib),
}
const last_line =
  /^freed ([\d,]+) bytes; the volume uses ([\d,]+) bytes, of which ([\d,]+) are live\n$/

afterAll(cleanUp)

const bytesIn = (folder: string) =>
  readdirSync(folder).reduce((sum, name) => sum + statSync(join(folder, name)).size, 0)

const client = ({ url, credentials }: Server) => {
  const headers = {
    authorization: `Bearer ${credentials.blob.token}`,
    "content-type": "application/octet-stream",
  }
  return {
    put: async (seed: number, bytes: number) => {
      const body = new Uint8Array(noise(seed, bytes))
      const answer = await fetch(`${url}/v1/blobs/stream`, { method: "POST", headers, body })
      expect(answer.status).toBe(200)
      return idOf(body)
    },
    remove: async (id: string) => {
      const answer = await fetch(`${url}/v1/blobs/${id}`, { method: "DELETE", headers })
      expect(answer.status).toBe(200)
    },
    statusOf: async (id: string) =>
      (await fetch(`${url}/v1/blobs/${id}`, { headers: { ...headers, accept: "*/*" } })).status,
  }
}

const numbers = (stdout: string) =>
  (last_line.exec(stdout) ?? []).slice(1).map((text) => Number(text.replaceAll(",", "")))

describeWithServer("almanac blobs compact", () => {
  it(
    "frees deleted space with a running server, over HTTP, and without a server",
    async () => {
      const data_dir = newFolder()
      const folder = join(data_dir, "blobs", "volume")
      const none = await runVerb(data_dir, ["blobs", "compact"], settings)
      expect([none.code, none.stderr]).toEqual([1, expect.stringContaining("has no volume")])

      const server = await startServer(data_dir, settings)
      const { put, remove } = client(server)
      const kept = await put(0, mib)
      const fill = async (first: number) => {
        const ids: Array<string> = []
        for (let seed = first; seed < first + 40; seed++) {
          ids.push(await put(seed, seed % 2 === 0 ? mib : 200_000))
        }
        for (const id of ids) await remove(id)
      }
      await fill(1)
      const before = bytesIn(folder)
      const beside = await runVerb(data_dir, ["blobs", "compact"], settings)
      expect([beside.code, beside.stderr]).toEqual([0, ""])
      const [given, used, live] = numbers(beside.stdout)
      expect(given).toBeGreaterThan(8 * mib)
      // The reported size matches the disk usage.
      expect(Math.abs(before - bytesIn(folder) - (given ?? 0))).toBeLessThan(mib)
      expect(live).toBeGreaterThan(mib)
      expect(used).toBeGreaterThan(live ?? 0)

      const named = {
        ...settings,
        ALMANAC_URL: server.url,
        ALMANAC_TOKEN: server.credentials.blob.token,
      }
      const over = await runVerb(data_dir, ["blobs", "compact", "--json"], named)
      expect([over.code, over.stderr]).toEqual([0, ""])
      expect(JSON.parse(over.stdout)).toMatchObject({ is_done: true, remaining_bytes: 0 })
      await fill(100)
      await server.stop()
      const alone = await runVerb(data_dir, ["blobs", "compact"], settings)
      expect([alone.code, alone.stderr]).toEqual([0, ""])
      expect(numbers(alone.stdout)[0]).toBeGreaterThan(8 * mib)
      const again = await startServer(data_dir, settings)
      expect(await client(again).statusOf(kept)).toBe(200)
      await again.stop()
    },
    timeout_ms,
  )
})
