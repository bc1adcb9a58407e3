/**
 * Ten real processes: every row of document 1's state table, and every error of a cluster.
 *
 * Source: document 1 §3, §4 ClusterService, §7; DECISIONS, document 1.
 */
import { afterAll, beforeAll, expect, it } from "vitest"
import { noise } from "../../contract/blob-storage/engine-bytes.ts"
import { describeWithServer } from "../../world/programs/nats.ts"
import { hashed } from "../../world/server/blob-client.ts"
import { type Client, connect } from "../../world/server/client.ts"
import { getRaw, putAs, statesOf } from "../../world/server/cluster-run.ts"
import {
  startWorld,
  untilActive,
  untilSeen,
  type World,
  whole_ms_max,
} from "../../world/server/cluster-world.ts"
import { cleanUp, until } from "../../world/server/server.ts"
import {
  away,
  bodyOf,
  during,
  nowhere,
  nth,
  reads,
  store,
  timeout_ms,
  tooFew,
  untilReached,
  untilShards,
} from "./asks.ts"

const capacity_bytes = 2 ** 33

afterAll(cleanUp)

const post = async (client: Client, path: string, value: unknown) => {
  const headers = { "content-type": "application/json" }
  return bodyOf(await client.ask("POST", path, { headers, body: JSON.stringify(value) }))
}

describeWithServer("ten nodes", () => {
  let world: World
  let first: Client
  let second: Client
  beforeAll(async () => {
    // Long enough for guests to join until the cluster has its maximum number of members.
    const environment = { ALMANAC_CLUSTER__REMOVE_AFTER_SECONDS: "40" }
    world = await startWorld({ count: 10, deadline_s: 10, environment })
    await untilActive(world)
    first = nth(world, 1).client
    second = nth(world, 2).client
  }, timeout_ms)
  afterAll(() => world?.stop(), timeout_ms)

  const stateOf = async (client: Client) => await client.json<State>("GET", "/v1/cluster/state")
  const guest = { node_id: "guest", address: "127.0.0.1:1", capacity_bytes }
  const heartbeat = { node_id: "guest", used_bytes: 0, blob_count: 0, ring_version: 0 }

  it("(none) becomes active by a join at any member, and the ring's version rises", async () => {
    const before = await stateOf(second)
    const joined = await post(first, "/v1/cluster/join", guest)
    expect(joined).toMatchObject({ status: 200, accepted: true })
    expect(joined.ring_version).toBeGreaterThan(before.ring_version)
    await untilSeen(second, "guest", "active")
    const again = await post(second, "/v1/cluster/join", guest)
    expect(again).toMatchObject({ accepted: true, ring_version: joined.ring_version })
  })

  it("a node whose ring is old converges by one heartbeat, or by sync-ring", async () => {
    const { ring_version } = await stateOf(first)
    const behind = await post(second, "/v1/cluster/heartbeat", heartbeat)
    expect(behind).toMatchObject({ status: 200, ok: true, ring_version })
    expect(behind.nodes).toHaveLength(11)
    const same = await post(second, "/v1/cluster/heartbeat", { ...heartbeat, ring_version })
    expect([same.ok, same.nodes]).toEqual([true, undefined])
    const ring = await post(second, "/v1/cluster/sync-ring", { ring_version: 0 })
    expect(ring).toMatchObject({ status: 200, ring_version, vnodes_per_node: 128 })
    expect(ring.node_ids).toHaveLength(11)
  })

  it(
    "active becomes offline by silence, active by a heartbeat, and is removed when it stays away",
    async () => {
      await untilSeen(second, "guest", "offline")
      expect(await post(first, "/v1/cluster/heartbeat", heartbeat)).toMatchObject({ ok: true })
      await untilSeen(second, "guest", "active")
      await untilSeen(second, "guest", "offline")
      await untilSeen(second, "guest", undefined)
    },
    timeout_ms,
  )

  it("an unknown node's heartbeat is 404, ok false, with the advice to rejoin", async () => {
    const answer = await post(second, "/v1/cluster/heartbeat", heartbeat)
    expect(answer).toMatchObject({ status: 404, ok: false, commands: ["rejoin"] })
  })

  it("any becomes removed at once by a leave that is not graceful", async () => {
    await post(first, "/v1/cluster/join", guest)
    const left = await post(second, "/v1/cluster/leave", { node_id: "guest" })
    expect(left).toEqual({ status: 200, acknowledged: true })
    expect((await statesOf(second)).join()).not.toContain("guest")
  })

  it(
    "active becomes leaving by a graceful leave, and is gone when what it had is elsewhere",
    async () => {
      const tenth = nth(world, 10)
      const kept = new Map<string, Buffer>()
      for (let seed = 0; seed < 40; seed++) {
        const bytes = Buffer.concat([Buffer.from(`${seed}`), noise(seed, 20_000)])
        const policy = ["NONE", "REPLICA2", "EC42", "EC82"][seed % 4] ?? "NONE"
        await store(tenth.client, bytes, policy)
        kept.set(hashed(bytes).id, bytes)
      }
      const left = await post(first, "/v1/cluster/leave", { node_id: "node-10", graceful: true })
      expect(left).toEqual({ status: 200, acknowledged: true })
      expect(await statesOf(first)).toContain("node-10 leaving")
      const refused = bodyOf(await putAs(tenth.client, noise(1, 10), "NONE"))
      expect(refused).toMatchObject({ status: 503, code: "UNAVAILABLE" })
      const now = bodyOf(await putAs(first, noise(2, 10), "EC82"))
      expect(now).toMatchObject(tooFew(9, 10))
      await untilSeen(second, "node-10", undefined)
      expect(await tenth.server.stop()).toEqual({ code: 0, signal: null })
      for (const [id, bytes] of kept) {
        await reads(second, id, bytes)
      }
      await world.comeBack(tenth)
      await untilActive(world)
      await untilReached(world, nth(world, 1))
    },
    timeout_ms,
  )

  it(
    "go on under EC42 without two of them, and give what is under EC82",
    async () => {
      const wide = noise(31, 300_000)
      await untilShards(world, await store(first, wide, "EC82"), 10)
      const gone = [nth(world, 4), nth(world, 7)]
      await during(world, gone, world.nodes.slice(0, 2), async () => {
        away(world, gone, true)
        for (const { node_id } of gone) await untilSeen(first, node_id, "offline")
        const bytes = noise(32, 300_000)
        await store(first, bytes, "EC42")
        for (const all of [wide, bytes]) {
          await reads(second, hashed(all).id, all)
        }
        expect(bodyOf(await putAs(first, bytes, "EC82"))).toMatchObject(tooFew(8, 10))
      })
    },
    timeout_ms,
  )

  it("400: a field is missing or no number, an identifier is no identifier", async () => {
    for (const [path, value] of [
      ["/v1/cluster/join", { node_id: "guest" }],
      ["/v1/cluster/leave", {}],
      ["/v1/cluster/heartbeat", { node_id: "guest" }],
      ["/v1/cluster/sync-ring", { ring_version: "x" }],
    ] as const) {
      const answer = await post(second, path, value)
      expect([path, answer.status, answer.code]).toEqual([path, 400, "INVALID_ARGUMENT"])
    }
    const answer = bodyOf(await getRaw(second, "abc"))
    expect(answer).toMatchObject({ status: 400, message: "invalid blob ID" })
    expect(bodyOf(await putAs(second, noise(1, 5), "EC99"))).toMatchObject({ status: 400 })
  })

  it("401 without a credential, and 403 without the scope, on each path", async () => {
    const { url, credentials } = nth(world, 3).server
    for (const [token, status] of [
      ["nobody", 401],
      [credentials.blob_read.token, 403],
    ] as const) {
      const client = connect(url, token)
      for (const path of ["join", "leave", "heartbeat", "sync-ring"]) {
        const answer = await post(client, `/v1/cluster/${path}`, {})
        expect([path, answer.status]).toEqual([path, status])
      }
      expect((await client.ask("GET", "/v1/cluster/metrics")).status).toBe(status)
      client.close()
    }
  })

  it("404: a blob that no node has, a leave of no member", async () => {
    const message = "blob not found on any node"
    const absent = { status: 404, code: "NOT_FOUND", message }
    expect(bodyOf(await getRaw(second, nowhere))).toMatchObject(absent)
    const left = await post(second, "/v1/cluster/leave", { node_id: "nobody" })
    expect(left).toMatchObject({ status: 404, code: "NOT_FOUND" })
  })

  it("409: the same bytes under another policy, at any node that has them", async () => {
    const bytes = noise(41, 1000)
    await store(first, bytes, "REPLICA3")
    const answer = bodyOf(await putAs(first, bytes, "NONE"))
    expect(answer).toMatchObject({ status: 409, code: "ALREADY_EXISTS" })
  })

  it("429: the cluster has as many members as it may have", async () => {
    const guests = Array.from({ length: 30 }, (_, n) => ({ ...guest, node_id: `guest-${n}` }))
    for (const one of guests) {
      expect((await post(first, "/v1/cluster/join", one)).status).toBe(200)
    }
    const answer = await post(second, "/v1/cluster/join", guest)
    expect(answer).toMatchObject({ status: 429, code: "RESOURCE_EXHAUSTED" })
    for (const { node_id } of guests) {
      expect((await post(first, "/v1/cluster/leave", { node_id })).status).toBe(200)
    }
  })

  it(
    "500: more than two of an EC put's stores fail",
    async () => {
      const gone = [5, 6, 7].map((number) => nth(world, number))
      const message = "too many shard store failures"
      await during(world, gone, world.nodes.slice(0, 2), async () => {
        away(world, gone, false)
        const answer = bodyOf(await putAs(first, noise(51, 3_000_000), "EC82"))
        expect(answer).toMatchObject({ status: 500, code: "INTERNAL", message })
      })
    },
    timeout_ms,
  )

  it("501: a method that a path does not have", async () => {
    const answer = bodyOf(await second.ask("DELETE", "/v1/cluster/state"))
    expect(answer).toMatchObject({ status: 501, code: "UNIMPLEMENTED" })
  })

  it(
    "503: a member cannot be asked for what no other has",
    async () => {
      const gone = [nth(world, 6)]
      await during(world, gone, world.nodes.slice(0, 2), async () => {
        away(world, gone, false)
        expect(bodyOf(await getRaw(second, nowhere))).toMatchObject({
          status: 503,
          code: "UNAVAILABLE",
          message: "cluster degraded",
          detail: `No node that responded has the blob ${nowhere}; no response from node-6.`,
        })
      })
    },
    timeout_ms,
  )

  it(
    "503: a change of members cannot reach the log, while puts and gets go on",
    async () => {
      const node = nth(world, 8)
      world.cutFromLog(node)
      const answer = await post(node.client, "/v1/cluster/leave", { node_id: "node-1" })
      expect(answer).toMatchObject({ status: 503, message: "cluster degraded" })
      const bytes = noise(61, 1000)
      await store(node.client, bytes, "REPLICA3")
      await reads(second, hashed(bytes).id, bytes)
      world.heal()
      await untilActive(world)
    },
    timeout_ms,
  )

  it(
    "let two more join at once, and agree on twelve",
    async () => {
      await world.addTwo()
      await untilActive(world)
      const rings = await until("one ring on all", whole_ms_max, async () => {
        const states = await Promise.all(world.clients().map(stateOf))
        const versions = new Set(states.map(({ ring_version }) => ring_version))
        return versions.size === 1 && states
      })
      expect(rings).toHaveLength(12)
    },
    timeout_ms,
  )
})

interface State {
  readonly ring_version: number
}
