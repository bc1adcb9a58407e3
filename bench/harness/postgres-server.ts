/**
 * A temporary PostgreSQL server for a bench or a test: new files, a Unix socket, removed
 * afterwards.
 */
import { type ChildProcess, execFileSync, spawn, spawnSync } from "node:child_process"
import { once } from "node:events"
import { existsSync, readdirSync } from "node:fs"
import { chmod, chown, cp, mkdir } from "node:fs/promises"
import { join } from "node:path"
import { findTree, treeEnvironment } from "../../launcher/trees.mjs"
import type { Settings } from "./suite.ts"

const ready_wait_ms = 30_000

/** The folder of the newest server's programs below `folder`; undefined if there is none. */
const programsIn = (folder: string): string | undefined => {
  const installations = join(folder, "usr/lib/postgresql")
  if (!existsSync(installations)) return undefined
  const versions = readdirSync(installations).sort((a, b) => Number(b) - Number(a))
  return versions
    .map((version) => join(installations, version, "bin"))
    .find((bin) => existsSync(join(bin, "initdb")))
}

/** The programs of the system or of the bootstrap's tree; undefined if neither has them. */
export const programs = (): string | undefined => {
  const tree = findTree("postgresql")
  return tree === undefined ? undefined : programsIn(tree)
}

export const serverVersion = (bin: string): string =>
  execFileSync(join(bin, "postgres"), ["--version"], {
    encoding: "utf8",
    env: { ...process.env, ...treeEnvironment(findTree("postgresql") ?? "/") },
  }).trim()

export interface Server {
  /** The folder of the socket. */
  readonly socket: string
  /** Kills the server at once, like a power failure; it can be started again. */
  readonly kill: () => Promise<void>
  readonly start: () => Promise<void>
}

/** PostgreSQL refuses to run as root; it then runs as its package's user, or as nobody. */
export const unprivileged = () => {
  if (process.getuid?.() !== 0) return {}
  const name = spawnSync("id", ["postgres"]).status === 0 ? "postgres" : "nobody"
  const id = (flag: string) => Number(execFileSync("id", [flag, name], { encoding: "utf8" }))
  return { uid: id("-u"), gid: id("-g") }
}

/** Programs that this user may run: root's own cache is not readable by others. */
const reachable = async (scratch: string, is_root: boolean) => {
  const tree = findTree("postgresql")
  if (tree === undefined) throw new Error("no PostgreSQL (apt-get install postgresql)")
  if (tree === "/" || !is_root) return tree
  const copy = join(scratch, "tree")
  await cp(tree, copy, { recursive: true, verbatimSymlinks: true })
  return copy
}

/**
 * Starts a server in a new folder under `scratch`. All settings are the defaults, and sync is on
 * unless `flags` turn it off; only the folder's owner (and root) can reach the socket.
 */
export const startServer = async (
  scratch: string,
  onEnd: Settings["onEnd"],
  flags: ReadonlyArray<string> = ["fsync=on", "synchronous_commit=on"],
): Promise<Server> => {
  const user = unprivileged()
  if (user.uid !== undefined) await chmod(scratch, 0o711)
  const tree = await reachable(scratch, user.uid !== undefined)
  const bin = programsIn(tree) ?? ""
  const folder = join(scratch, "postgresql")
  await mkdir(folder, { mode: 0o700 })
  if (user.uid !== undefined) await chown(folder, user.uid, user.gid)
  const around = { ...user, cwd: folder, env: { ...process.env, ...treeEnvironment(tree) } }
  const data = join(folder, "data")
  const init = ["-D", data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--no-locale", "-N"]
  const made = spawnSync(join(bin, "initdb"), init, { ...around, encoding: "utf8" })
  if (made.status !== 0) throw new Error(`initdb: ${made.stderr.trim().split("\n").at(-1)}`)
  const settings = ["listen_addresses=", `unix_socket_directories=${folder}`, ...flags]
  const command = ["-D", data, ...settings.flatMap((setting) => ["-c", setting])]
  let server: ChildProcess | undefined
  const start = async () => {
    server = spawn(join(bin, "postgres"), command, {
      ...around,
      stdio: ["ignore", "ignore", "pipe"],
    })
    await ready(server)
  }
  onEnd(() => end(server, "SIGINT"))
  await start()
  return { socket: folder, start, kill: () => end(server, "SIGQUIT") }
}

const ready = async (server: ChildProcess) => {
  const late = AbortSignal.timeout(ready_wait_ms)
  let output = ""
  while (!output.includes("ready to accept connections")) {
    if (server.exitCode !== null || !server.stderr) throw new Error(`postgres: ${output.trim()}`)
    const [chunk] = await once(server.stderr, "data", { signal: late })
    output += String(chunk)
  }
  server.stderr?.resume()
}

/** SIGINT ends sessions and leaves the files consistent; SIGQUIT leaves them to recovery. */
const end = async (server: ChildProcess | undefined, signal: "SIGINT" | "SIGQUIT") => {
  if (server === undefined || server.exitCode !== null) return
  server.kill(signal)
  await once(server, "exit")
}
