/** Shutdown while its dependencies hang: its own nats-server, its workers, or a request. */
import { afterAll, expect, it } from "vitest"
import { describeWithServer } from "../../world/programs/nats.ts"
import { getBlob, hashed, putBlob } from "../../world/server/blob-client.ts"
import { connect } from "../../world/server/client.ts"
import {
  childrenOf,
  cleanUp,
  isRunning,
  natsServersOn,
  newFolder,
  outputOf,
  type Server,
  startServer,
  until,
} from "../../world/server/server.ts"

/** DECISIONS, address: exit code 0 within 10 s; the rest is a margin for a busy machine. */
const stop_ms_max = 10_000 + 4_000
const soon_ms = 30_000
const minutes_ms = 120_000

afterAll(cleanUp)

interface ClusterState {
  readonly nodes: ReadonlyArray<{ readonly node_id: string }>
}

const join = (server: Server, node_id: string) => {
  const client = connect(server.url, server.credentials.blob.token)
  const body = JSON.stringify({ node_id, address: "10.0.0.1:1", capacity_bytes: 1 })
  const headers = { "content-type": "application/json", "idempotency-key": node_id }
  return client.ask("POST", "/v1/cluster/join", { headers, body }).finally(client.close)
}

const nodesOf = async (server: Server) => {
  const client = connect(server.url, server.credentials.blob.token)
  const { nodes } = await client.json<ClusterState>("GET", "/v1/cluster/state")
  client.close()
  return nodes.map(({ node_id }) => node_id)
}

/** Pauses all child processes of the server, and sends requests that need the bus. */
const stands = async (server: Server) => {
  const children = childrenOf(server.pid)
  expect(natsServersOn(server.data_dir).every((pid) => children.includes(pid))).toBe(true)
  for (const pid of children) process.kill(pid, "SIGSTOP")
  const request = join(server, "late").catch(() => undefined)
  return { children, request }
}

const stopsInTime = async (server: Server, children: ReadonlyArray<number>) => {
  const since = performance.now()
  server.signal("SIGTERM")
  expect(await server.ended, outputOf(server)).toEqual({ code: 0, signal: null })
  expect(performance.now() - since).toBeLessThan(stop_ms_max)
  expect(children.filter(isRunning)).toEqual([])
  expect(natsServersOn(server.data_dir)).toEqual([])
}

describeWithServer("a stop while all children stand still", () => {
  it(
    "takes no longer than any stop may, and loses nothing",
    async () => {
      const data_dir = newFolder()
      const first = await startServer(data_dir)
      const bytes = Buffer.from("kept over a stop that was cut short")
      const client = connect(first.url, first.credentials.blob.token)
      expect((await putBlob(client, bytes, "json")).status).toBe(200)
      client.close()
      await until("the join", soon_ms, async () => (await join(first, "n1")).status === 200)
      const { children, request } = await stands(first)
      await stopsInTime(first, children)
      await request

      const second = await startServer(data_dir)
      expect(await nodesOf(second)).toContain("n1")
      const again = connect(second.url, second.credentials.blob.token)
      expect(await getBlob(again, hashed(bytes).id, "raw")).toEqual(bytes)
      again.close()
      expect(await second.stop()).toEqual({ code: 0, signal: null })
    },
    minutes_ms,
  )
})
