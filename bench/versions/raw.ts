/** A bare `node:http` server as a process of its own: reads every body, answers with bytes. */
import { fork } from "node:child_process"
import { once } from "node:events"
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { fileURLToPath } from "node:url"
import type { Contestant } from "./operations.ts"

/** `GET /N` gets N bytes; any other request gets `{}` once its body has arrived. */
const serve = () => {
  const bodies = new Map<string, Buffer>()
  const server = createServer((request, response) => {
    const { method, url = "" } = request
    if (method !== "GET") {
      request.resume().on("end", () => response.writeHead(200, { "content-length": 2 }).end("{}"))
      return
    }
    const body = bodies.get(url) ?? Buffer.alloc(Number(url.slice(1)), 1)
    bodies.set(url, body)
    response.writeHead(200, { "content-length": body.length }).end(body)
  })
  server.listen(0, "127.0.0.1", () => {
    // A TCP server that listens has an address with a port.
    const { port } = server.address() as AddressInfo
    process.send?.(port)
  })
}

export const startRaw = async (): Promise<Contestant> => {
  const child = fork(fileURLToPath(import.meta.url), {
    stdio: ["ignore", "ignore", "inherit", "ipc"],
  })
  const [port] = await once(child, "message")
  return {
    origin: `http://127.0.0.1:${port}`,
    credentials: undefined,
    pid: child.pid ?? 0,
    stop: async () => {
      // Its connections stay open otherwise.
      child.kill()
      await once(child, "exit")
    },
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) serve()
