/** nginx's WebDAV in the blob suite: one worker, which does not sync before it responds. */
import { mkdir, rename, rm, writeFile } from "node:fs/promises"
import { join } from "node:path"
import { freePort } from "../harness/free-port.ts"
import { unique_mark } from "./request.ts"
import {
  type BlobServer,
  disk_room_bytes,
  environmentOf,
  listens,
  plainGet,
  plainPut,
  startProgram,
} from "./server.ts"

/** Folders for temporary bodies: only the first is used, but all must be writable. */
const scratch = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]

const configuration = (port: number) => `daemon off;
${process.getuid?.() === 0 ? "user root;" : ""}
worker_processes 1;
pid nginx.pid;
error_log stderr;
events { worker_connections 2048; }
http {
  access_log off;
  sendfile on;
  tcp_nopush on;
  keepalive_requests 1000000;
  client_max_body_size 1g;
  client_body_buffer_size 64k;
  ${scratch.map((name) => `${name}_temp_path ${name};`).join(" ")}
  server {
    listen 127.0.0.1:${port} backlog=1024;
    root blobs;
    location / {
      dav_methods PUT DELETE;
      create_full_put_path on;
    }
  }
}
`

export const startNginx = async (folder: string): Promise<BlobServer> => {
  const environment = environmentOf("nginx")
  const port = await freePort()
  const blobs = join(folder, "blobs")
  await mkdir(blobs, { recursive: true })
  const path = join(folder, "nginx.conf")
  await writeFile(path, configuration(port))
  const stop = await startProgram({
    folder,
    name: "nginx",
    command: "nginx",
    environment,
    args: ["-p", folder, "-c", path, "-e", "stderr"],
    isReady: () => listens(port),
  })
  return {
    protocol: "http",
    port,
    room_bytes: disk_room_bytes,
    stop,
    put: plainPut("PUT", `/${unique_mark}`),
    get: plainGet(`/${unique_mark}`),
    clear: async () => {
      // A put that the client has abandoned may still complete, in the new folder.
      await rename(blobs, `${blobs}-before`)
      await mkdir(blobs, { recursive: true })
      await rm(`${blobs}-before`, { recursive: true, maxRetries: 10 })
    },
  }
}
