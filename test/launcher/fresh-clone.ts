/** A new user's environment: a clone of HEAD, a separate home, and none of our files in either. */
import { execFileSync, spawn } from "node:child_process"
import { mkdirSync, mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { delimiter, dirname, join } from "node:path"
import { performance } from "node:perf_hooks"
import { setTimeout as pause } from "node:timers/promises"

const root = dirname(dirname(import.meta.dirname))

/** A start on a fresh clone downloads about 250 MB. */
export const install_max_ms = 8 * 60_000
/** DECISIONS: exit code 0 within 10 s of SIGTERM; npm's own exit comes on top. */
const stop_max_ms = 12_000
const poll_ms = 50

export interface Place {
  readonly clone: string
  readonly home: string
  readonly environment: Readonly<Record<string, string>>
  /** The command's prefix, which selects another user or network. */
  readonly before: ReadonlyArray<string>
}

/** Variables for the registry and mirror, which depend on the machine and not on the home. */
const passed_on = /^(NODE_EXTRA_CA_CERTS|SSL_CERT_\w+|\w+_proxy)$/i

const machineEnvironment = () => {
  const path = (process.env.PATH ?? "").split(delimiter)
  const registry = execFileSync("npm", ["config", "get", "registry"], {
    encoding: "utf8",
    stdio: ["ignore", "pipe", "ignore"],
  }).trim()
  const kept = Object.entries(process.env).filter(
    (entry): entry is [string, string] => passed_on.test(entry[0]) && entry[1] !== undefined,
  )
  return {
    ...Object.fromEntries(kept),
    PATH: path.filter((folder) => !folder.includes("node_modules")).join(delimiter),
    npm_config_registry: registry,
    npm_config_update_notifier: "false",
    ALMANAC_API__BIND_HOST: "127.0.0.1",
    ALMANAC_API__BIND_PORT: "0",
  }
}

const folders: Array<string> = []
const groups: Array<number> = []

/** A clone of HEAD and an empty home, in a folder that `cleanUp` deletes. */
export const makePlace = (): Place => {
  const folder = mkdtempSync(join(tmpdir(), "almanac-clone-"))
  folders.push(folder)
  const [clone, home] = [join(folder, "clone"), join(folder, "home")]
  mkdirSync(home)
  execFileSync("git", ["clone", "--quiet", "--no-hardlinks", root, clone])
  return { clone, home, environment: { ...machineEnvironment(), HOME: home }, before: [] }
}

/** Stops processes that a failed test left running, and deletes every clone and home. */
export const cleanUp = () => {
  for (const group of groups) {
    if (membersOf(group).length > 0) process.kill(-group, "SIGKILL")
  }
  for (const folder of folders) rmSync(folder, { recursive: true, force: true })
}

const membersOf = (group: number) => {
  const lines = execFileSync("ps", ["-eo", "pid=,pgid=,stat="], { encoding: "utf8" }).split("\n")
  return lines
    .map((line) => line.trim().split(/\s+/))
    .filter(([, pgid, state]) => Number(pgid) === group && !state?.startsWith("Z"))
    .map(([pid]) => Number(pid))
}

/** Runs a command in the clone, in its own process group, as its user would. */
export const runCommand = (place: Place, command: string, args: ReadonlyArray<string>) => {
  const [first = command, ...rest] = [...place.before, command, ...args]
  const since = performance.now()
  const child = spawn(first, rest, {
    cwd: place.clone,
    detached: true,
    env: place.environment,
    stdio: ["ignore", "pipe", "pipe"],
  })
  if (child.pid !== undefined) groups.push(child.pid)
  const printed = { stdout: "", stderr: "" }
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    printed.stdout += text
  })
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    printed.stderr += text
  })
  const ended = new Promise<number | null>((resolve, reject) => {
    child.on("error", reject)
    child.on("close", (code) => resolve(code))
  })
  return { child, ended, printed, since }
}

/** Waits for the line with the server's address; fails with the output otherwise. */
export const untilReady = async (run: ReturnType<typeof runCommand>) => {
  for (;;) {
    const [, address] = /^almanac ready (http:\S+)/m.exec(run.printed.stdout) ?? []
    const took_ms = performance.now() - run.since
    if (address) return { address, took_ms }
    const is_over = run.child.exitCode !== null || took_ms > install_max_ms
    if (is_over) throw new Error(`not ready: ${run.printed.stdout}\n${run.printed.stderr}`)
    await pause(poll_ms)
  }
}

/** Stops the whole run like a terminal or a container; returns the processes left after 12 s. */
export const stop = async (run: ReturnType<typeof runCommand>) => {
  const group = run.child.pid ?? 0
  run.child.kill("SIGTERM")
  const late = pause(stop_max_ms, "late" as const)
  const code = await Promise.race([run.ended, late])
  const left = membersOf(group)
  if (left.length > 0) process.kill(-group, "SIGKILL")
  return { code, left }
}

/** Starts, waits until ready, and stops. Returns the startup time in milliseconds. */
export const timeStart = async (place: Place, command: string, args: ReadonlyArray<string>) => {
  const run = runCommand(place, command, args)
  const { took_ms } = await untilReady(run)
  await stop(run)
  return took_ms
}
