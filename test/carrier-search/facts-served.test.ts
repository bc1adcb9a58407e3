/** A search on a real server: published once and audited once, even after a kill. */
import { rmSync } from "node:fs"
import { join } from "node:path"
import { afterAll, assert, it } from "vitest"
import { describeWithServer } from "../world/programs/nats.ts"
import { cleanUp, newFolder, type Server, startServer, until } from "../world/server/server.ts"
import { read } from "../world/system/events-served.ts"

/** Maximum time for a fact to enter and leave the log on a busy machine. */
const wait_ms_max = 30_000
const calm = { ALMANAC_COMPUTE__KIND: "none" }

afterAll(cleanUp)

/** No registry is set up, so the search fails, but it is still recorded. */
const search = async ({ url }: Server, start: number) => {
  const answer = await fetch(`${url}/api/search?start=${start}&end=${start + 9}`)
  await answer.arrayBuffer()
  assert.equal(answer.status, 502)
  return answer.headers.get("x-request-id")
}

const audited = async ({ url, credentials }: Server) => {
  const headers = { authorization: `Bearer ${credentials.admin.token}` }
  const query = "service=carrier-search&order=asc"
  const answer = await fetch(`${url}/v1/admin/audit?${query}`, { headers })
  assert.equal(answer.status, 200)
  const { events }: { events: ReadonlyArray<Record<string, unknown>> } = await answer.json()
  return events
}

const allAudited = (server: Server, count: number) =>
  until(`${count} searches in the audit`, wait_ms_max, async () => {
    const events = await audited(server)
    return events.length >= count && events
  })

describeWithServer("searches at a server", () => {
  it("are in the audit with actor and time, and published to subscribers, each once", async () => {
    const folder = newFolder()
    const first = await startServer(folder, calm)
    const before = new Date().toISOString()
    const request_ids = [await search(first, 1), await search(first, 11)]
    const [one, two] = await allAudited(first, 2)
    assert.deepEqual([one?.subject, two?.subject], ["1-10", "11-20"])
    assert.deepEqual([one?.request_id, two?.request_id], request_ids)
    assert.deepEqual([one?.actor, one?.type], ["anonymous", "CarrierSearchCompleted"])
    assert.isAtLeast(Date.parse(String(one?.at)), Date.parse(before))
    await first.killAll()

    // The spool is deleted meanwhile: the server creates another one and keeps running.
    for (const suffix of ["", "-wal"]) {
      rmSync(join(folder, `spool-carrier-search.sqlite${suffix}`), { force: true })
    }
    const second = await startServer(folder, calm)
    await search(second, 21)
    const events = await allAudited(second, 3)
    assert.deepEqual(
      events.map(({ subject }) => subject),
      ["1-10", "11-20", "21-30"],
    )
    const lines = await read(`${second.url}/v1/events`, second.credentials.admin.token, 0)
    const searches = () =>
      lines.blocks.flatMap(({ event }) =>
        event?.type === "carrier_search_completed" ? [event.subject] : [],
      )
    await until("the published searches", wait_ms_max, () => searches().length >= 3)
    lines.leave()
    assert.deepEqual(searches(), ["1-10", "11-20", "21-30"])
    await second.stop()
  }, 120_000)
})
