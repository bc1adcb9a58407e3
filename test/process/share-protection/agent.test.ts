/** An agent as a process: startup, rejected startup, and shutdown. */
import assert from "node:assert/strict"
import { readFileSync } from "node:fs"
import { afterAll, beforeAll, expect, it } from "vitest"
import { describeWithServer } from "../../world/programs/nats.ts"
import { connect } from "../../world/server/client.ts"
import {
  cleanUp,
  isRunning,
  newFolder,
  runVerb,
  type Server,
  startServer,
  startVerb,
  until,
} from "../../world/server/server.ts"
import { agentsOf } from "../../world/server/share-tenant.ts"

const soon_ms = 30_000
/** DECISIONS, address. */
const stop_ms_max = 10_000
const by_hand = "worker-by-hand"

interface Worker {
  readonly id: string
  readonly state: string
  readonly image_version: string | null
  readonly heartbeat_at: string | null
  readonly project_id: string
}

const workersOf = async ({ url, credentials }: Server) => {
  const client = connect(url, credentials.admin.token)
  const headers = { "x-auth-token": credentials.admin.token }
  const path = "/v1/admin/workers"
  const { workers } = await client.json<{ workers: Array<Worker> }>("GET", path, undefined, headers)
  client.close()
  return workers
}

const ready = (server: Server, is_it: (worker: Worker) => boolean) =>
  until("a worker that is ready", soon_ms, async () =>
    (await workersOf(server)).find((worker) => is_it(worker) && worker.state === "ready"),
  )

afterAll(cleanUp)

describeWithServer("an agent", () => {
  let server: Server
  beforeAll(async () => {
    server = await startServer(newFolder())
  })

  it("starts soon after the server, and reveals its secret to no one", async () => {
    const worker = await ready(server, () => true)
    expect(worker.image_version).toBe("almanac-agent")
    const agents = agentsOf(server)
    expect(agents).toHaveLength(1)
    const seed = /\bSU[A-Z2-7]{56}\b/
    for (const file of ["cmdline", "environ"]) {
      expect(readFileSync(`/proc/${agents[0]}/${file}`, "utf8")).not.toMatch(seed)
    }
    expect(readFileSync(`${server.data_dir}/nats/nats.conf`, "utf8")).not.toMatch(seed)
  })

  it("is a worker of a running server, until it is stopped", async () => {
    const { project_id } = await ready(server, () => true)
    const agent = startVerb(server.data_dir, ["agent", "--worker-id", by_hand])
    const worker = await ready(server, ({ id }) => id === by_hand)
    expect(worker.project_id).toBe(project_id)
    const since = performance.now()
    agent.child.kill("SIGTERM")
    expect(await agent.ended).toEqual({ code: 0, signal: null })
    expect(performance.now() - since).toBeLessThan(stop_ms_max)
    expect(agent.printed.stderr).not.toMatch(/"(ERROR|FATAL)"/)
  })

  it("is refused where there is no server, or the server does not let it in", async () => {
    const alone = await runVerb(newFolder(), ["agent"])
    expect(alone.code).not.toBe(0)
    expect(alone.stderr).toContain("No server runs on")
    const wrong = await runVerb(server.data_dir, ["agent", "--worker-id", "two words"])
    expect(wrong.code).not.toBe(0)
  })

  it("ends when its server is killed, and is the same worker after the next start", async () => {
    const [agent] = agentsOf(server)
    assert(agent !== undefined)
    const before = await ready(server, ({ id }) => id !== by_hand)
    await server.killAlone()
    await until("the agent's end", stop_ms_max, () => !isRunning(agent))
    server = await startServer(server.data_dir, {
      ALMANAC_CONDUCTOR__WORKER_HEARTBEAT_DEADLINE_SECONDS: "10",
    })
    const since = new Date().toISOString()
    await until("its heartbeat", soon_ms, async () => {
      const all = await workersOf(server)
      return all.some(({ id, heartbeat_at }) => id === before.id && (heartbeat_at ?? "") > since)
    })
    expect(agentsOf(server)).toHaveLength(1)
  })

  it("is no worker any more once it was silent for the deadline", async () => {
    const dead = await until("the first one dead", soon_ms, async () =>
      (await workersOf(server)).find(({ id, state }) => id === by_hand && state === "dead"),
    )
    const refused = await runVerb(server.data_dir, ["agent", "--worker-id", dead.id])
    expect(refused.code).not.toBe(0)
    expect(refused.stderr).toContain("dead")
    expect(await server.stop()).toEqual({ code: 0, signal: null })
  })

  it("is not there without an engine, and the server says why", async () => {
    const without = { ALMANAC_ENGINE__BINARY: "/nowhere/restic" }
    const server = await startServer(newFolder(), without)
    const answer = await fetch(new URL("/readyz", server.url))
    expect(answer.status).toBe(200)
    expect(await answer.text()).toMatch(/share-protection ok.*jobs stay queued.*restic/)
    expect(agentsOf(server)).toEqual([])
    await server.stop()
  })
})
