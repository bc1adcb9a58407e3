/**
 * A small load balancer. It polls `/readyz` of each process, sends each request to a process whose
 * last response was ready, reuses connections, and never retries.
 */
import { Agent, createServer, request } from "node:http"
import type { AddressInfo } from "node:net"
import { until } from "../../world/server/server.ts"

/**
 * Interval between polls of `/readyz`; a process that shuts down still responds to several of them.
 */
const look_ms = 100
const ready_ms_max = 60_000

interface Backend {
  readonly url: string
  is_ready: boolean
}

/** Listens on a free port of this machine. */
export const startBalancer = async () => {
  const agent = new Agent({ keepAlive: true })
  const backends = new Map<string, Backend>()
  let turn = 0
  const next = () => {
    const ready = [...backends.values()].filter(({ is_ready }) => is_ready)
    return ready[turn++ % ready.length]
  }
  const server = createServer((query, answer) => {
    const backend = next()
    if (backend === undefined) return void answer.writeHead(502).end("no process is ready")
    const { method, headers } = query
    const options = { method, headers, agent }
    const sent = request(new URL(query.url ?? "/", backend.url), options, (response) => {
      const headers = { ...response.headers }
      delete headers.connection
      answer.writeHead(response.statusCode ?? 502, headers)
      response.pipe(answer)
    })
    sent.on("error", ({ message }) => {
      if (answer.headersSent) answer.destroy()
      else answer.writeHead(502).end(message)
    })
    query.pipe(sent)
  })
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done))
  const look = async (backend: Backend) => {
    const answer = await fetch(new URL("/readyz", backend.url)).catch(() => undefined)
    backend.is_ready = answer?.status === 200
    await answer?.arrayBuffer()
  }
  const looking = setInterval(() => {
    for (const backend of backends.values()) void look(backend)
  }, look_ms)
  // A server that listens on a port has an address of this type.
  const { port } = server.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${port}`,
    /** Adds a process, replaces one with the same name, and waits until it is polled as ready. */
    put: async (name: string, url: string) => {
      const backend = { url, is_ready: false }
      backends.set(name, backend)
      await until(`${name} to be ready`, ready_ms_max, () => backend.is_ready)
    },
    close: () => {
      clearInterval(looking)
      agent.destroy()
      server.closeAllConnections()
      server.close()
    },
  }
}
