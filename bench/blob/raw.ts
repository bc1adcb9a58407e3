/**
 * `raw node:http` of the blob suite, both this process and its launcher: it reads puts to the end
 * and discards them, JSON ones after `JSON.parse` and `Buffer.from`; gets come from memory.
 */
import { fork } from "node:child_process"
import { once } from "node:events"
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { fileURLToPath } from "node:url"
import { unique_mark } from "./request.ts"
import { type BlobServer, json_type, jsonPut, plainGet, plainPut } from "./server.ts"

const serve = () => {
  const blobs = new Map<string, Buffer>()
  const server = createServer((request, response) => {
    if (request.method === "GET") {
      const bytes = Number(request.url?.split("/", 2)[1])
      const blob = blobs.get(request.url ?? "") ?? Buffer.alloc(bytes, 1)
      blobs.set(request.url ?? "", blob)
      response.writeHead(200, { "content-length": blob.length })
      return void response.end(blob)
    }
    const is_json = request.headers["content-type"] === json_type
    const parts: Array<Buffer> = []
    request.on("data", (part) => is_json && parts.push(part))
    request.on("end", () => {
      const { data } = is_json ? JSON.parse(Buffer.concat(parts).toString()) : { data: "" }
      response.writeHead(200, {
        "content-length": 2,
        "x-bytes": Buffer.from(data, "base64").length,
      })
      response.end("{}")
    })
  })
  server.listen(0, "127.0.0.1", 1024, () => {
    // The address of a listening TCP server includes a port.
    const { port } = server.address() as AddressInfo
    process.send?.(port)
  })
}

/** It responds to a get of any key with this many bytes. */
export const startRaw = async (_folder: string, blob_bytes: number): Promise<BlobServer> => {
  const child = fork(fileURLToPath(import.meta.url), {
    stdio: ["ignore", "ignore", "inherit", "ipc"],
  })
  const [port] = await once(child, "message")
  return {
    protocol: "http",
    port: Number(port),
    room_bytes: Number.POSITIVE_INFINITY,
    put: plainPut("PUT", `/${unique_mark}`),
    putJson: jsonPut("PUT", "/", {}),
    get: plainGet(`/${blob_bytes}`),
    stop: async () => {
      child.disconnect()
      await once(child, "exit")
    },
  }
}

if (process.send !== undefined && process.argv[1] === fileURLToPath(import.meta.url)) {
  process.on("disconnect", () => process.exit(0))
  serve()
}
