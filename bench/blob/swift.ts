/**
 * OpenStack Swift in the blob suite: all four servers with one worker each, one copy, its own
 * tokens.
 */
import { spawnSync } from "node:child_process"
import { mkdir, writeFile } from "node:fs/promises"
import { userInfo } from "node:os"
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

/**
 * Debian's own Python, because the packages are for its version; PATH may list another one first.
 */
const python = "/usr/bin/python3"
const program = join(import.meta.dirname, "../peers/swift_server.py")
const backends = ["account", "container", "object"]
const device = "d1"
const { username: user } = userInfo()

const hash_path = `[swift-hash]
swift_hash_path_suffix = bench
swift_hash_path_prefix = bench
[storage-policy:0]
name = one
default = yes
`

const common = (folder: string, port: number) => `[DEFAULT]
bind_ip = 127.0.0.1
bind_port = ${port}
user = ${user}
swift_dir = ${folder}
devices = ${join(folder, "devices")}
mount_check = false
workers = 1
log_level = ERROR
`

const backend = (name: string) => `[pipeline:main]
pipeline = ${name}-server
[app:${name}-server]
use = egg:swift#${name}
log_requests = false
`

/** Tokens exist only in memcached, and a proxy that finds it slow avoids it for a minute. */
const patience = `memcache_max_connections = 64
connect_timeout = 10
pool_timeout = 60
io_timeout = 10
error_suppression_limit = 1000000
`

const proxy = (memcached: number) => `[pipeline:main]
pipeline = catch_errors cache tempauth proxy-server
[app:proxy-server]
use = egg:swift#proxy
account_autocreate = true
[filter:tempauth]
use = egg:swift#tempauth
user_test_tester = testing .admin
[filter:catch_errors]
use = egg:swift#catch_errors
[filter:cache]
use = egg:swift#memcache
memcache_servers = 127.0.0.1:${memcached}
${patience}`

const configure = async (
  folder: string,
  ports: Readonly<Record<string, number>>,
  environment: NodeJS.ProcessEnv,
) => {
  await mkdir(join(folder, "devices", device), { recursive: true })
  await writeFile(join(folder, "swift.conf"), hash_path)
  for (const [name, port] of Object.entries(ports)) {
    const own = name === "proxy" ? proxy(ports.memcached ?? 0) : backend(name)
    await writeFile(join(folder, `${name}-server.conf`), common(folder, port) + own)
  }
  const of_rings = backends.map((name) => String(ports[name]))
  const args = [program, "rings", folder, device, ...of_rings]
  const made = spawnSync(python, args, { env: environment, encoding: "utf8" })
  if (made.status !== 0) throw new Error(`its rings: ${made.stderr.slice(-400)}`)
}

/** Signs in and creates a container; throws while the server is not ready. */
const openContainer = async (port: number) => {
  const init = { "x-auth-user": "test:tester", "x-auth-key": "testing" }
  const signed = await fetch(`http://127.0.0.1:${port}/auth/v1.0`, { headers: init })
  const token = signed.headers.get("x-auth-token")
  const url = signed.headers.get("x-storage-url")
  if (token === null || url === null) throw new Error(`signing in answered ${signed.status}`)
  const container = `${new URL(url).pathname}/bench`
  const headers = { "x-auth-token": token }
  const made = await fetch(`http://127.0.0.1:${port}${container}`, { method: "PUT", headers })
  if (!made.ok) throw new Error(`making a container answered ${made.status}`)
  return { path: `${container}/${unique_mark}`, headers }
}

export const startSwift = async (folder: string): Promise<BlobServer> => {
  const environment = environmentOf("swift")
  const names = ["memcached", ...backends, "proxy"]
  const ports: Record<string, number> = {}
  for (const name of names) ports[name] = await freePort()
  await configure(folder, ports, environment)
  const stops: Array<() => Promise<void>> = []
  const stop = async () => void (await Promise.all(stops.map((each) => each())))
  const { memcached, proxy: port = 0 } = ports
  const started = { folder, environment }
  try {
    const running = names.map(async (name) => {
      const server =
        name === "memcached"
          ? { command: name, args: ["-u", user, "-l", "127.0.0.1", "-p", String(memcached)] }
          : { command: python, args: [program, "serve", folder, name] }
      const isReady = () => listens(ports[name] ?? 0)
      stops.push(await startProgram({ ...started, name, ...server, isReady }))
    })
    const failed = (await Promise.allSettled(running)).find(({ status }) => status === "rejected")
    if (failed?.status === "rejected") throw failed.reason
    const { path, headers } = await openContainer(port)
    return {
      protocol: "http",
      port,
      room_bytes: disk_room_bytes,
      stop,
      put: plainPut("PUT", path, headers),
      get: plainGet(path, headers),
    }
  } catch (cause) {
    await stop()
    throw cause
  }
}
