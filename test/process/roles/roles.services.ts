/** One deployment as several processes with roles: reads after writes, outages, and restarts. */
import assert from "node:assert/strict"
import { randomUUID } from "node:crypto"
import { readFile } from "node:fs/promises"
import { join } from "node:path"
import { setTimeout as pause } from "node:timers/promises"
import { jetstreamManager } from "@nats-io/jetstream"
import { connect as connectNats } from "@nats-io/transport-node"
import { afterAll, beforeAll, expect, it } from "vitest"
import { describeWithServer } from "../../world/programs/nats.ts"
import { describeWithRestic } from "../../world/programs/restic.ts"
import { hashed, putBlob } from "../../world/server/blob-client.ts"
import { type Client, connect, responseText } from "../../world/server/client.ts"
import { type Deployment, newDeployment } from "../../world/server/deployment.ts"
import { startNats } from "../../world/server/outside-nats.ts"
import { cleanUp, newFolder, outputOf, type Server, until } from "../../world/server/server.ts"
import { startBalancer } from "./balancer.ts"

const soon_ms = 60_000
const minutes_ms = 300_000
/** Many times longer than the balancer needs to detect that a process is shutting down. */
const drain_s = 2

let nats: Awaited<ReturnType<typeof startNats>>
let deployment: Deployment
beforeAll(async () => {
  nats = await startNats(newFolder())
  const environment = {
    // Without the blob and model services, the processes start faster.
    ALMANAC_SERVICES: "share-protection",
    ALMANAC_QUOTA__TARGETS: "100000",
    ALMANAC_API__DRAIN_SECONDS: String(drain_s),
    ALMANAC_AUDIT__INDEX: "false",
  }
  deployment = newDeployment({ url: nats.url, environment })
})
afterAll(async () => {
  await deployment.stop()
  await cleanUp()
  await nats.stop()
})

const gateway = (name: string) => deployment.start(name, { roles: ["gateway"] })
const workhorse = (name: string) => deployment.start(name, { roles: ["actors", "conductor"] })
const memberOf = (url: string) => connect(url, deployment.tokens.member)

/** Requests a target that waits for its trust: a command without external calls. */
const post = (client: Client, name: string, key: string) =>
  client.ask("POST", "/v1/targets", {
    headers: { "content-type": "application/json", "idempotency-key": key },
    body: JSON.stringify({ name, endpoint: "https://s3.example.org", bucket: "bucket-of-it" }),
  })

const read = (client: Client, id: string, position: string) =>
  client.ask("GET", `/v1/targets/${id}`, { headers: { "x-almanac-position": position } })

/** The id of the created target, and the position at which it is visible. */
const madeBy = (answer: Awaited<ReturnType<typeof post>>) => {
  assert(answer.status < 300, responseText(answer))
  const id: string = JSON.parse(answer.body.toString()).target.id
  return { id, position: String(answer.headers["x-almanac-position"]) }
}

const nodeOf = async (name: string) =>
  (await readFile(join(deployment.dataOf(name), "node-id"), "utf8")).trim()

/** The current lease holders, according to the bus. */
const openLeases = async (url: string) => {
  const connection = await connectNats({ servers: url })
  const { streams } = await jetstreamManager(connection)
  const [stream, subjects] = ["KV_ALMANAC_LEASES", "$KV.ALMANAC_LEASES."]
  const held = async () => {
    const { state } = await streams.info(stream, { subjects_filter: `${subjects}>` })
    const found = await Promise.all(
      Object.keys(state.subjects ?? {}).map(async (subject) => {
        const last = await streams.getMessage(stream, { last_by_subj: subject })
        // A record without a value: the lease was released or has expired.
        const holder: string =
          last && last.data.length > 0 ? last.json<{ holder: string }>().holder : ""
        return [subject.slice(subjects.length), holder] as const
      }),
    )
    return new Map(found.filter(([, holder]) => holder !== ""))
  }
  return { held, close: () => connection.close() }
}

interface Workers {
  readonly workers: ReadonlyArray<{ readonly state: string }>
}

interface Listed {
  readonly targets: ReadonlyArray<{ readonly id: string; readonly name: string }>
}

/** All targets, page by page. */
const listAll = async (client: Client) => {
  const all: Array<Listed["targets"][number]> = []
  for (let marker = ""; ; ) {
    const path = `/v1/targets?limit=1000${marker && `&marker=${marker}`}`
    const { targets } = await client.json<Listed>("GET", path)
    all.push(...targets)
    const last = targets.at(-1)
    if (last === undefined || targets.length < 1000) return all
    marker = last.id
  }
}

/** Writes and reads through one URL until it is stopped; records the failed requests. */
const load = (url: string, tasks: number) => {
  const failed: Array<string> = []
  const made = new Set<string>()
  let goes_on = true
  const task = async (n: number) => {
    const client = memberOf(url)
    for (let i = 0; goes_on; i++) {
      try {
        const answer = await post(client, `load ${n} ${i}`, randomUUID())
        const { id, position } = madeBy(answer)
        made.add(id)
        const seen = await read(client, id, position)
        if (seen.status !== 200) failed.push(`read: ${responseText(seen)}`)
      } catch (error) {
        failed.push(String(error))
      }
      await pause(10)
    }
    client.close()
  }
  const tasks_done = Promise.all(Array.from({ length: tasks }, (_, n) => task(n)))
  return {
    made,
    failed,
    stop: async () => {
      goes_on = false
      await tasks_done
    },
  }
}

describeWithServer("a deployment of several processes", () => {
  let gateways: ReadonlyArray<Server>
  let workhorses: ReadonlyArray<Server>
  beforeAll(async () => {
    workhorses = await Promise.all([workhorse("w1"), workhorse("w2")])
    gateways = await Promise.all([gateway("g1"), gateway("g2")])
  }, minutes_ms)

  it("shows through one gateway what was written through the other", async () => {
    const [one, other] = gateways.map(({ url }) => memberOf(url)) as [Client, Client] // two started
    for (let i = 0; i < 20; i++) {
      const [writer, reader] = i % 2 === 0 ? [one, other] : [other, one]
      const { id, position } = madeBy(await post(writer, `across ${i}`, randomUUID()))
      expect((await read(reader, id, position)).status).toBe(200)
    }
    const lists = await Promise.all([listAll(one), listAll(other)])
    expect(lists[0]).toEqual(lists[1])
    one.close()
    other.close()
  })

  it("says of each process what it does, and no more", async () => {
    const [{ url } = { url: "" }] = workhorses
    const text = async (path: string, headers = {}) => {
      const answer = await fetch(new URL(path, url), { headers })
      return [answer.status, await answer.text()] as const
    }
    expect(await text("/livez")).toEqual([200, "ok\n"])
    expect(await text("/readyz")).toEqual([200, "actors ok\nconductor ok\n"])
    expect((await text("/metrics"))[0]).toBe(401)
    const admin = { authorization: `Bearer ${deployment.tokens.admin}` }
    expect((await text("/metrics", admin))[1]).toContain("almanac_")
    for (const path of ["/v1/targets", "/v1/blobs", "/v1/events", "/openapi.json", "/console"]) {
      expect([path, (await text(path, admin))[0]]).toEqual([path, 404])
    }
    const [one = { url: "" }] = gateways
    const ready = await fetch(new URL("/readyz", one.url))
    expect(await ready.text()).toMatch(/^share-protection ok/)
    expect((await fetch(new URL("/v1/blobs", one.url))).status).toBe(404)
  })

  it(
    "restarts every process in turn without a failed request or a lost command",
    async () => {
      const balancer = await startBalancer()
      const put = async (name: string, server: Server) => {
        await balancer.put(name, server.url)
        return server
      }
      const fronts = await Promise.all(gateways.map((server, n) => put(`g${n + 1}`, server)))
      const under_way = load(balancer.url, 3)
      const more = async (count: number) => {
        const before = under_way.made.size
        await until("more commands", soon_ms, () => under_way.made.size >= before + count)
      }
      const ended: Array<unknown> = []
      try {
        await more(10)
        for (const [n, server] of workhorses.entries()) {
          ended.push(await server.stop())
          await more(5)
          await workhorse(`w${n + 1}`)
        }
        for (const [n, server] of fronts.entries()) {
          ended.push(await server.stop())
          await more(5)
          await put(`g${n + 1}`, await gateway(`g${n + 1}`))
        }
        await more(10)
      } finally {
        await under_way.stop()
      }
      const client = memberOf(balancer.url)
      const listed = new Set((await listAll(client)).map(({ id }) => id))
      expect(under_way.failed).toEqual([])
      expect([...under_way.made].filter((id) => !listed.has(id))).toEqual([])
      expect(ended).toEqual(Array.from({ length: 4 }, () => ({ code: 0, signal: null })))
      console.log(`rolling restart: ${under_way.made.size} commands and reads, none failed`)
      client.close()
      balancer.close()
    },
    minutes_ms,
  )

  it(
    "returns 503 while no process carries out commands, and runs a retried one once",
    async () => {
      await deployment.stop()
      const front = await gateway("g1")
      const client = memberOf(front.url)
      const key = randomUUID()
      const refused = await post(client, "while they were offline", key)
      expect(refused.status).toBe(503)
      const operator = connect(front.url, deployment.tokens.admin)
      const health = async () => (await operator.ask("GET", "/v1/admin/system/health")).status
      expect(await health()).toBe(503)
      expect(JSON.parse(refused.body.toString())).toMatchObject({ code: "svc.backend_unavailable" })
      const actors = await workhorse("w1")
      const first = madeBy(await post(client, "while they were offline", key))
      const again = madeBy(await post(client, "while they were offline", key))
      expect(again.id).toBe(first.id)
      const named = (await listAll(client)).filter(({ name }) => name === "while they were offline")
      expect(named, outputOf(actors)).toHaveLength(1)
      await until("the conductor to be healthy", soon_ms, async () => (await health()) === 200)
      operator.close()
      client.close()
    },
    minutes_ms,
  )

  it("gives its leases back before it ends, and another has them", async () => {
    // After the previous test, w1 is the only process with this role.
    const leases = await openLeases(nats.url)
    const [one, other] = await Promise.all([nodeOf("w1"), workhorse("w2").then(() => nodeOf("w2"))])
    const all = await until("w1 to hold all leases", soon_ms, async () => {
      const held = await leases.held()
      return held.size >= 4 && [...held.values()].every((holder) => holder === one) && held
    })
    await deployment.stop("w1")
    expect([...(await leases.held()).values()]).not.toContain(one)
    await until("w2 to hold all leases", soon_ms, async () => {
      const held = await leases.held()
      return [...all.keys()].every((name) => held.get(name) === other)
    })
    await leases.close()
  })

  describeWithRestic("a process that is a worker", () => {
    it(
      "takes part, and ends in order",
      async () => {
        const agent = await deployment.start("agent", { roles: ["agent"] })
        const front = await gateway("g2")
        const operator = connect(front.url, deployment.tokens.admin)
        await until(`a worker:\n${outputOf(agent)}`, soon_ms, async () => {
          const { workers } = await operator.json<Workers>("GET", "/v1/admin/workers")
          return workers.some(({ state }) => state === "ready")
        })
        expect(await (await fetch(new URL("/readyz", agent.url))).text()).toBe("agent ok\n")
        expect(await deployment.stop("agent")).toEqual([{ code: 0, signal: null }])
        operator.close()
      },
      minutes_ms,
    )
  })

  it(
    "migrates with running processes, repeatedly, and reports it by its exit code",
    async () => {
      for (let times = 0; times < 2; times++) {
        const { code, stdout, stderr } = await deployment.verb("migration", ["migrate"])
        expect([code, stderr]).toEqual([0, ""])
        expect(stdout).toContain("share-protection: at position")
      }
      const { code } = await deployment.verb("migration", ["migrate"], {
        environment: { ALMANAC_NATS__URL: "nats://127.0.0.1:1" },
      })
      expect(code).not.toBe(0)
    },
    minutes_ms,
  )
})

const listBlobs = async (client: Client) =>
  (await client.json<Page>("GET", "/v1/blobs")).ids.map(({ id }) => id)

interface Page {
  readonly ids: ReadonlyArray<{ readonly id: string }>
  readonly next_cursor?: string
}

describeWithServer("a cluster of blob nodes without a gateway", () => {
  it(
    "works by the actors of another process, and each node continues another's list",
    async () => {
      const environment = { ALMANAC_SERVICES: "blob-storage" }
      const cluster = newDeployment({ url: nats.url, environment })
      await cluster.start("w", { roles: ["actors", "conductor"] })
      const one = await cluster.start("one", { roles: ["blob"] })
      const joining = { ALMANAC_CLUSTER__JOIN: one.url }
      const other = await cluster.start("other", { roles: ["blob"], environment: joining })
      const [writer, reader] = [one, other].map(({ url }) => connect(url, cluster.tokens.blob))
      assert(writer !== undefined && reader !== undefined)
      const ids: Array<string> = []
      for (let n = 0; n < 4; n++) {
        const answer = await putBlob(writer, Buffer.from(`blob ${n}`), "json")
        assert.equal(answer.status, 200, responseText(answer))
        ids.push(hashed(Buffer.from(`blob ${n}`)).id)
      }
      const list = (client: Client, more = "") =>
        client.json<Page>("GET", `/v1/blobs?limit=2${more}`)
      // Both keep a copy of each blob, so a cursor has the same meaning on both.
      await until(
        "all copies",
        soon_ms,
        async () => (await listBlobs(reader)).length === ids.length,
      )
      const first = await list(writer)
      const rest = await list(reader, `&cursor=${encodeURIComponent(first.next_cursor ?? "")}`)
      const found = [...first.ids, ...rest.ids].map(({ id }) => id)
      expect(found).toEqual(await listBlobs(writer))
      expect(found).toHaveLength(ids.length)
      const { nodes } = await reader.json<{ nodes: ReadonlyArray<{ state: string }> }>(
        "GET",
        "/v1/cluster/state",
      )
      expect(nodes.map(({ state }) => state)).toEqual(["active", "active"])
      for (const client of [writer, reader]) client.close()
      for (const { code } of await cluster.stop()) expect(code).toBe(0)
    },
    minutes_ms,
  )
})
