/**
 * Six real processes of one cluster: document 1's guarantees for several nodes, over HTTP, before
 * and after two of them are killed.
 */
import { statSync } from "node:fs"
import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { noise } from "../../contract/blob-storage/engine-bytes.ts"
import { describeWithServer } from "../../world/programs/nats.ts"
import { getBlob, hashed, listBlobs } from "../../world/server/blob-client.ts"
import { type Answer, type Client, responseText } from "../../world/server/client.ts"
import {
  type Cluster,
  countCopies,
  getRaw,
  putAs,
  startCluster,
  statesOf,
} from "../../world/server/cluster-run.ts"
import {
  childrenOf,
  cleanUp,
  isRunning,
  newFolder,
  runVerb,
  until,
} from "../../world/server/server.ts"

const timeout_ms = 180_000
/** For events that take a second or two on an idle machine. */
const soon_ms = 30_000

afterAll(cleanUp)

const ok = (answer: Answer) => {
  expect([answer.status, answer.body.toString("utf8", 0, 300)]).toEqual([200, expect.anything()])
  return JSON.parse(answer.body.toString())
}

const put = async (client: Client, bytes: Uint8Array, policy: string) => {
  ok(await putAs(client, bytes, policy))
  return hashed(bytes).id
}

const bodyOf = ({ status, body }: Answer) => ({ status, ...JSON.parse(body.toString()) })

/** Every pair of the six nodes. */
const pairs = Array.from({ length: 6 }, (_, one) =>
  Array.from({ length: 5 - one }, (_, more) => [one + 1, one + more + 2] as const),
).flat()

describeWithServer("six nodes", () => {
  let cluster: Cluster
  beforeAll(async () => {
    cluster = await startCluster(6)
  }, timeout_ms)
  afterAll(async () => {
    await cluster?.stop()
  }, timeout_ms)
  const clientOf = (number: number) => cluster.clientOf(number)

  it("say where each is, and see one another", async () => {
    const lines = cluster.printed.stdout.trimEnd().split("\n")
    const logs = cluster.nodes.map(({ node_id, url }) => `node ${node_id} ${url}`)
    expect(lines.toSorted()).toEqual(["cluster ready", ...logs].toSorted())
    expect(lines.at(-1)).toBe("cluster ready")
    const active = cluster.nodes.map(({ node_id }) => `${node_id} active`)
    for (const client of cluster.clients) expect(await statesOf(client)).toEqual(active)
    expect(statSync(join(cluster.dir, "cluster.json")).mode & 0o777).toBe(0o600)
  })

  it("answer 401 to everybody on what is theirs alone", async () => {
    for (const path of ["/internal/v1", "/internal/v1/link", "/internal/v1/replicate"]) {
      const { status } = await clientOf(1).ask("POST", path, { body: "{}" })
      expect([path, status]).toEqual([path, 401])
    }
  })

  for (const [policy, copies] of [
    ["NONE", 1],
    ["REPLICA2", 2],
    ["REPLICA3", 3],
    ["UNSPECIFIED", 3],
    ["EC42", 6],
  ] as const) {
    it(`keep ${copies} of a blob under ${policy}, and each gives it`, async () => {
      for (const [seed, size] of [0, 1, 4096, 3_000_001].entries()) {
        const bytes = Buffer.concat([Buffer.from(`${policy} ${seed}`), noise(seed + 1, size)])
        const id = await put(clientOf(2), bytes, policy)
        expect(await countCopies(cluster.clients, id)).toBe(copies)
        for (const client of cluster.clients) {
          expect((await getBlob(client, id, "raw")).equals(bytes)).toBe(true)
        }
        const range = { range: "bytes=3-700000" }
        const { status, body } = await getRaw(clientOf(5), id, range)
        expect(status).toBe(206)
        expect(body.equals(bytes.subarray(3, 700_001))).toBe(true)
      }
    })
  }

  it("say with one voice that a blob is nowhere", async () => {
    const id = "0123456789abcdef0123456789abcdef"
    for (const path of [`/v1/blobs/${id}`, `/v1/blobs/${id}/stream`]) {
      const answer = bodyOf(await clientOf(3).ask("GET", path))
      const message = "blob not found on any node"
      expect(answer).toMatchObject({ status: 404, code: "NOT_FOUND", message })
    }
  })

  it("stat and list what is theirs, and all with scope=cluster", async () => {
    const bytes = Buffer.from("listed")
    const id = await put(clientOf(1), bytes, "NONE")
    for (const [client, exists] of [
      [clientOf(1), true],
      [clientOf(2), false],
    ] as const) {
      expect(await client.json("GET", `/v1/blobs/${id}/stat`)).toMatchObject({ exists })
      const everywhere = await client.json("GET", `/v1/blobs/${id}/stat?scope=cluster`)
      expect(everywhere).toMatchObject({ exists: true, meta: { size: bytes.length } })
      expect((await listBlobs(client)).includes(id)).toBe(exists)
      const { ids } = await client.json<{ ids: ReadonlyArray<{ id: string }> }>(
        "GET",
        "/v1/blobs?scope=cluster&limit=10000",
      )
      expect(ids).toContainEqual({ id: Buffer.from(id, "hex").toString("base64") })
    }
  })

  it("delete on one node, or with scope=cluster on each", async () => {
    const bytes = noise(9, 5000)
    const id = await put(clientOf(4), bytes, "REPLICA3")
    await clientOf(4).json("DELETE", `/v1/blobs/${id}`)
    expect(await countCopies(cluster.clients, id)).toBe(2)
    expect((await getBlob(clientOf(4), id, "raw")).equals(bytes)).toBe(true)
    await clientOf(1).json("DELETE", `/v1/blobs/${id}?scope=cluster`)
    expect(await countCopies(cluster.clients, id)).toBe(0)
    expect((await getRaw(clientOf(4), id)).status).toBe(404)
  })

  it(
    "serve an erasure coded blob while any two of them are paused",
    async () => {
      const bytes = noise(11, 1_500_000)
      const id = await put(clientOf(1), bytes, "EC42")
      for (const [one, other] of pairs) {
        const queried = [1, 2, 3, 4, 5, 6].find((number) => number !== one && number !== other) ?? 0
        cluster.signal(one, "SIGSTOP")
        cluster.signal(other, "SIGSTOP")
        try {
          const got = await getBlob(clientOf(queried), id, "raw")
          expect([one, other, got.equals(bytes)]).toEqual([one, other, true])
        } finally {
          cluster.signal(one, "SIGCONT")
          cluster.signal(other, "SIGCONT")
        }
      }
    },
    timeout_ms,
  )

  it("refuse EC82, which wants ten, before a byte is read", async () => {
    const answer = bodyOf(await putAs(clientOf(1), noise(1, 100), "EC82"))
    const detail = "not enough nodes for EC (have 6, need 10)"
    expect(answer).toMatchObject({
      status: 412,
      code: "FAILED_PRECONDITION",
      message: "not enough nodes for EC",
      detail,
    })
  })

  it(
    "lose nothing with two of them killed, and take puts",
    async () => {
      const kept = new Map<string, Buffer>()
      for (let seed = 20; seed < 30; seed++) {
        const policy = seed % 2 === 0 ? "EC42" : "REPLICA3"
        const bytes = Buffer.concat([Buffer.from(`${seed}`), noise(seed, 200_000)])
        kept.set(await put(clientOf((seed % 6) + 1), bytes, policy), bytes)
      }
      await Promise.all([cluster.kill(3), cluster.kill(6)])
      const [left, ...others] = [1, 2, 4, 5].map(clientOf)
      if (left === undefined) throw new Error("no node is left")
      // Until the failure is detected, four of six shards are enough.
      const bytes = Buffer.from(noise(31, 300_000))
      const early = await putAs(left, bytes, "EC42")
      const is_known = (await statesOf(left)).some((state) => state.endsWith("offline"))
      if (!is_known) expect(responseText(early)).toMatch(/^200 /)
      if (early.status === 200) kept.set(hashed(bytes).id, bytes)
      for (const [id, bytes] of kept) {
        for (const client of [left, ...others]) {
          expect((await getBlob(client, id, "raw")).equals(bytes)).toBe(true)
        }
      }
      await put(left, noise(32, 1000), "REPLICA3")

      await until(
        "two nodes to be offline",
        soon_ms,
        async () =>
          (await statesOf(left)).filter((state) => state.endsWith("offline")).length === 2,
      )
      const detail = "not enough nodes for EC (have 4, need 6)"
      const refusal = bodyOf(await putAs(left, noise(33, 100), "EC42"))
      expect(refusal).toMatchObject({ status: 412, detail })
      // The remaining nodes recreate the copies of the two killed nodes.
      const replicated = [...kept.keys()].filter((_, n) => n % 2 === 1)
      expect(replicated).toHaveLength(5)
      for (const id of replicated) {
        await until(`three copies of ${id}`, soon_ms, async () => {
          return (await countCopies([left, ...others], id)) >= 3
        })
      }
      expect(cluster.output()).toMatch(
        /^node-3 was killed by SIGKILL; the other nodes keep running$/m,
      )
    },
    timeout_ms,
  )
})

describe("almanac cluster", () => {
  it("explains itself, and refuses what cannot be", async () => {
    const help = await runVerb(newFolder(), ["cluster", "--help"])
    expect(help.stdout).toContain("almanac cluster --nodes 6")
    for (const [flags, problem] of [
      [["--nodes", "0"], "--nodes must be between 1 and 40"],
      [["--nodes", "41"], "--nodes must be between 1 and 40"],
      [["--nodes", "3", "--port", "65534"], "--port"],
    ] as const) {
      const { code, stderr, stdout } = await runVerb(newFolder(), ["cluster", ...flags])
      expect([code, stdout]).toEqual([1, ""])
      expect(stderr).toContain(problem)
    }
  })
})

describeWithServer("a cluster that is killed", () => {
  it(
    "leaves no node behind, and was alone on its folder until then",
    async () => {
      const cluster = await startCluster(2)
      const [first] = cluster.nodes
      const pids = [...cluster.nodes.map(({ pid }) => pid), ...childrenOf(first?.pid ?? 0)]
      expect(pids).toHaveLength(3)
      const second = await runVerb(newFolder(), ["cluster", "--nodes", "1", "--dir", cluster.dir])
      expect([second.code, second.stdout]).toEqual([1, ""])
      const used = `${cluster.dir} is in use by process ${cluster.pid}`
      const holder = `almanac: ${used}: stop that cluster`
      expect(second.stderr).toContain(holder)

      cluster.killParent()
      await until("all of them to be gone", soon_ms, () => !pids.some(isRunning))
      for (const { node_id } of cluster.nodes) {
        expect(cluster.output()).toContain(
          `${node_id}: the process that started this server has exited`,
        )
      }
    },
    timeout_ms,
  )
})

describeWithServer("a cluster that receives a stop signal", () => {
  it(
    "takes all of its nodes along, and says what a node that cannot start says",
    async () => {
      const cluster = await startCluster(2)
      const [first] = cluster.nodes
      const pids = [...cluster.nodes.map(({ pid }) => pid), ...childrenOf(first?.pid ?? 0)]
      expect(pids).toHaveLength(3)
      const taken = new URL(first?.url ?? "").port
      const refused = await runVerb(newFolder(), ["cluster", "--nodes", "1", "--port", taken])
      expect(refused.code).toBe(1)
      expect(refused.stderr).toMatch(new RegExp(`^almanac: node-1 did not start: .*${taken}`, "m"))
      expect(await cluster.stop()).toEqual({ code: 0, signal: null })
      expect(pids.filter(isRunning)).toEqual([])
    },
    timeout_ms,
  )
})
