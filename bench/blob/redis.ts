/** Redis in the blob suite, with its append-only file synced before each response. */
import { once } from "node:events"
import { connect } from "node:net"
import { freePort } from "../harness/free-port.ts"
import { respHead, unique_mark } from "./request.ts"
import { type BlobServer, environmentOf, gibibyte, listens, startProgram } from "./server.ts"

/** All data is also in memory until it is cleared after the round. */
const room_bytes = 8 * gibibyte

const flags = {
  appendonly: "yes",
  appendfsync: "always",
  save: "",
  "auto-aof-rewrite-percentage": "0",
}

/** Sends one command and waits for its single-line response. */
const tell = async (port: number, command: string) => {
  const socket = connect(port, "127.0.0.1")
  socket.write(respHead([command]))
  await once(socket, "data")
  socket.destroy()
}

export const startRedis = async (folder: string): Promise<BlobServer> => {
  const environment = environmentOf("redis")
  const port = await freePort()
  const settings = Object.entries(flags).flatMap(([name, value]) => [`--${name}`, value])
  const stop = await startProgram({
    folder,
    name: "redis",
    command: "redis-server",
    environment,
    args: ["--port", String(port), "--bind", "127.0.0.1", "--dir", folder, ...settings],
    isReady: () => listens(port),
  })
  return {
    protocol: "resp",
    port,
    room_bytes,
    stop,
    put: (blob_bytes) => ({
      blob_bytes,
      form: "plain",
      tail: "\r\n",
      head: respHead(["SET", unique_mark], blob_bytes),
    }),
    get: (key) => ({ blob_bytes: 0, form: "plain", tail: "", head: respHead(["GET", key]) }),
    clear: () => tell(port, "FLUSHALL"),
  }
}
