/** A PostgreSQL server of the bench's own: new files, a unix socket, sync on; gone afterwards. */
import { type ChildProcess, execFileSync, spawn, spawnSync } from "node:child_process"
import { once } from "node:events"
import { existsSync, readdirSync } from "node:fs"
import { chmod, chown, mkdir } from "node:fs/promises"
import { join } from "node:path"
import type { Settings } from "./suite.ts"

const installations = "/usr/lib/postgresql"
const ready_wait_ms = 30_000

/** Where the newest server's programs are; undefined where there is none. */
export const programs = (): string | undefined => {
  if (!existsSync(installations)) return undefined
  const versions = readdirSync(installations).sort((a, b) => Number(b) - Number(a))
  return versions
    .map((version) => join(installations, version, "bin"))
    .find((folder) => existsSync(join(folder, "initdb")))
}

export const serverVersion = (bin: string): string =>
  execFileSync(join(bin, "postgres"), ["--version"], { encoding: "utf8" }).trim()

export interface Server {
  /** The folder of the socket. */
  readonly socket: string
}

/** PostgreSQL refuses to run as root: then it runs as the user `postgres` of its package. */
const unprivileged = () => {
  if (process.getuid?.() !== 0) return {}
  const id = (flag: string) => Number(execFileSync("id", [flag, "postgres"], { encoding: "utf8" }))
  return { uid: id("-u"), gid: id("-g") }
}

/**
 * Starts a server in a new folder below `scratch`. All settings are the defaults, and sync is on;
 * nobody but the folder's owner (and root) reaches the socket.
 */
export const startServer = async (scratch: string, onEnd: Settings["onEnd"]): Promise<Server> => {
  const bin = programs()
  if (!bin) throw new Error(`no PostgreSQL in ${installations} (apt-get install postgresql)`)
  const user = unprivileged()
  const folder = join(scratch, "postgresql")
  await mkdir(folder, { mode: 0o700 })
  if (user.uid !== undefined) {
    await chmod(scratch, 0o711)
    await chown(folder, user.uid, user.gid)
  }
  const data = join(folder, "data")
  const init = ["-D", data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--no-locale"]
  const made = spawnSync(join(bin, "initdb"), init, { ...user, encoding: "utf8", cwd: folder })
  if (made.status !== 0) throw new Error(`initdb: ${made.stderr.trim().split("\n").at(-1)}`)
  const settings = ["listen_addresses=", `unix_socket_directories=${folder}`]
  const durable = ["fsync=on", "synchronous_commit=on"]
  const flags = [...settings, ...durable].flatMap((setting) => ["-c", setting])
  const server = spawn(join(bin, "postgres"), ["-D", data, ...flags], {
    ...user,
    cwd: folder,
    stdio: ["ignore", "ignore", "pipe"],
  })
  onEnd(() => stop(server))
  await ready(server)
  return { socket: folder }
}

const ready = async (server: ChildProcess) => {
  const late = AbortSignal.timeout(ready_wait_ms)
  let said = ""
  while (!said.includes("ready to accept connections")) {
    if (server.exitCode !== null || !server.stderr) throw new Error(`postgres: ${said.trim()}`)
    const [chunk] = await once(server.stderr, "data", { signal: late })
    said += String(chunk)
  }
  server.stderr?.resume()
}

/** SIGINT is its fast shutdown: sessions are ended, the files left whole. */
const stop = async (server: ChildProcess) => {
  if (server.exitCode !== null) return
  server.kill("SIGINT")
  await once(server, "exit")
}
