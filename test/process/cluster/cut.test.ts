/**
 * Three real processes of a cluster. One of them is cut off from the log, from the others or from
 * both, or returns with an older disk. The tests check which operations still work, and that
 * everything is complete afterwards.
 */
import { afterAll, beforeAll, expect, it } from "vitest"
import { describeWithServer } from "../../world/programs/nats.ts"
import { getBlob, hashed } from "../../world/server/blob-client.ts"
import { type Answer, connect, responseText } from "../../world/server/client.ts"
import { countCopies, getRaw, putAs } from "../../world/server/cluster-run.ts"
import {
  startWorld,
  untilActive,
  untilSeen,
  type World,
  type WorldNode,
  whole_ms_max,
} from "../../world/server/cluster-world.ts"
import { auditEvents } from "../../world/server/history.ts"
import { cleanUp, until } from "../../world/server/server.ts"

const timeout_ms = 240_000
const nowhere = "0123456789abcdef0123456789abcdef"

afterAll(cleanUp)

const put = async ({ client }: WorldNode, text: string, policy = "REPLICA3") => {
  const bytes = Buffer.from(text)
  const answer = await putAs(client, bytes, policy)
  expect([text, answer.status]).toEqual([text, 200])
  return hashed(bytes).id
}

const textAt = async ({ client }: WorldNode, id: string) =>
  (await getBlob(client, id, "raw")).toString()

const statusAndDetail = ({ status, body }: Answer) => [status, JSON.parse(body.toString()).detail]

describeWithServer("of three nodes, the third", () => {
  let world: World
  let first: WorldNode
  let second: WorldNode
  let third: WorldNode
  beforeAll(async () => {
    // A short sweep interval, so that missing copies are detected soon.
    const environment = { ALMANAC_CLUSTER__SWEEP_SECONDS: "2" }
    world = await startWorld({ count: 3, deadline_s: 4, environment })
    const [one, two, three] = world.nodes
    if (!(one && two && three)) throw new Error("there are not three")
    first = one
    second = two
    third = three
    await untilActive(world)
  }, timeout_ms)
  afterAll(async () => {
    await world?.stop()
  }, timeout_ms)

  const untilCopies = (id: string, count: number) =>
    until(`${count} copies of ${id}`, whole_ms_max, async () => {
      return (await countCopies(world.clients(), id)) === count
    })
  const deleteEverywhere = async ({ client }: WorldNode, id: string) => {
    const answer = await client.ask("DELETE", `/v1/blobs/${id}?scope=cluster`)
    expect(responseText(answer)).toBe(`200 {"deleted":true}`)
  }

  it(
    "takes puts, gets and deletes without the log, though the others take it for offline",
    async () => {
      const before = await put(first, "before")
      world.cutFromLog(third)
      const early = await put(third, "early")
      await untilSeen(first.client, "node-3", "offline")
      const late = await put(third, "late")
      expect(await textAt(third, before)).toBe("before")
      expect(await textAt(first, early)).toBe("early")
      expect(await textAt(second, late)).toBe("late")
      await deleteEverywhere(third, before)
      expect(await countCopies(world.clients(), before)).toBe(0)
      world.heal()
      await untilActive(world)
      for (const id of [early, late]) await untilCopies(id, 3)
    },
    timeout_ms,
  )

  it(
    "takes puts without the others, who say that they cannot know what it has",
    async () => {
      world.cutFromPeers(third)
      const [there, here, absent] = await Promise.all([
        put(third, "there"),
        put(first, "here"),
        getRaw(second.client, nowhere),
      ])
      const detail = `No node that responded has the blob ${nowhere}; no response from node-3.`
      expect(statusAndDetail(absent)).toEqual([503, detail])
      expect(await textAt(third, there)).toBe("there")
      expect(await textAt(second, here)).toBe("here")
      expect(await countCopies(world.clients(), here)).toBe(2)
      world.heal()
      for (const id of [there, here]) await untilCopies(id, 3)
      expect((await getRaw(second.client, nowhere)).status).toBe(404)
    },
    timeout_ms,
  )

  it(
    "keeps what it took alone, and learns what was deleted meanwhile",
    async () => {
      const doomed = await put(second, "doomed")
      world.cutFromPeers(third)
      world.cutFromLog(third)
      const [there, here] = await Promise.all([put(third, "alone"), put(first, "the others")])
      await untilSeen(first.client, "node-3", "offline")
      const detail = `No node has the blob ${there}; offline and not queried: node-3.`
      expect(statusAndDetail(await getRaw(first.client, there))).toEqual([404, detail])
      await deleteEverywhere(second, doomed)
      expect(await textAt(third, doomed)).toBe("doomed")
      world.heal()
      await untilActive(world)
      for (const id of [there, here]) await untilCopies(id, 3)
      await untilCopies(doomed, 0)
    },
    timeout_ms,
  )

  it(
    "comes back with an older disk, and gets what it lacks and nothing that was deleted",
    async () => {
      const [kept, doomed] = [await put(third, "kept"), await put(third, "to be deleted")]
      await world.kill(third)
      world.saveDisk(third)
      await world.comeBack(third)
      const newer = await Promise.all(["one", "two", "three"].map((text) => put(third, text)))
      // Only this disk has these blobs, and their facts are in the log.
      for (const text of ["4", "5", "6", "7", "8", "9"]) await put(third, text, "NONE")
      await deleteEverywhere(first, doomed)
      await world.kill(third)
      world.exchangeDisk(third)
      await world.comeBack(third)
      await untilActive(world)
      for (const id of [kept, ...newer]) await untilCopies(id, 3)
      await untilCopies(doomed, 0)
      const last = await put(third, "logged after the newer disk's changes")
      const admin = connect(third.server.url, third.server.credentials.admin.token)
      await until("the log to have it", whole_ms_max, async () => {
        const events = await auditEvents(admin, [])
        return events.some(({ id, data }) => id === "node-3" && data.id === last)
      })
      admin.close()
    },
    timeout_ms,
  )

  it(
    "ends in order, with the others",
    async () => {
      const ended = await world.stop()
      expect(ended).toEqual(ended.map(() => ({ code: 0, signal: null })))
    },
    timeout_ms,
  )
})
