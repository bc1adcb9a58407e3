/**
 * The whole program as a child process with its own folder: started as a user starts it,
 * distinguished from its nats-server, stopped and killed.
 */
import { execFileSync, spawn } from "node:child_process"
import { mkdtempSync, readFileSync, realpathSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { setTimeout as pause } from "node:timers/promises"
import { Effect } from "effect"
import { serversOf } from "#bus"

const root = join(import.meta.dirname, "../../..")

/** A start on a machine that runs several tasks at once; on an idle machine it takes one second. */
const ready_ms_max = 60_000
/** A command reads at most the whole log, which is short in tests. */
const verb_ms_max = 120_000
const look_ms = 10
/** Characters of standard error in a failure message. */
const output_chars_max = 6_000

export type Environment = Readonly<Record<string, string>>

export interface Tenant {
  readonly token: string
  readonly user_id: string
  readonly project_id: string
}

/** The parts of dev-credentials.json that tests use. */
export interface Credentials {
  readonly tenant: Tenant & { readonly trust_id: string; readonly share_id: string }
  readonly tenant_b: Tenant
  readonly blob: { readonly token: string }
  readonly blob_read: { readonly token: string }
  readonly admin: { readonly token: string }
  readonly nats: { readonly url: string; readonly user: string; readonly password: string }
}

export interface Ended {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
}

const folders: Array<string> = []
const running = new Set<Run>()

/** A new folder that `cleanUp` removes. */
export const newFolder = () => {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), "almanac-process-")))
  folders.push(folder)
  return folder
}

/** Excludes this folder from `cleanUp`, so that it can be inspected. */
export const keep = (folder: string) => {
  const index = folders.indexOf(folder)
  if (index !== -1) folders.splice(index, 1)
}

/** Waits until `is_so` returns a value; fails with `what` after `ms_max`. */
export const until = async <A>(
  what: string,
  ms_max: number,
  is_so: () => A | undefined | false | Promise<A | undefined | false>,
): Promise<A> => {
  const end = performance.now() + ms_max
  for (;;) {
    const found = await is_so()
    if (found !== undefined && found !== false) return found
    if (performance.now() > end) throw new Error(`not within ${ms_max} ms: ${what}`)
    await pause(look_ms)
  }
}

/** Only the variables that a program needs, so that the test's own settings do not affect it. */
const plain = (): Environment => {
  const kept = ["PATH", "HOME", "TMPDIR", "LANG", "XDG_CACHE_HOME"].flatMap((name) => {
    const value = process.env[name]
    return value === undefined ? [] : [[name, value] as const]
  })
  return Object.fromEntries(kept)
}

/**
 * The program that users start: the bundle if it was built from the current sources, otherwise the
 * sources.
 */
export const program = "launcher/run.mjs"

/** `almanac <args>` as a child process, of the release in the folder `from`. */
const run = (
  data_dir: string,
  args: ReadonlyArray<string>,
  environment: Environment,
  from = root,
) => runScript(data_dir, [program, ...args], environment, from)

const runScript = (
  data_dir: string,
  args: ReadonlyArray<string>,
  environment: Environment,
  from = root,
) => {
  // As `npm start` does, with compiled code from the cache.
  const node = ["--import", "./launcher/compile-cache.mjs"]
  const child = spawn(process.execPath, [...node, ...args], {
    cwd: from,
    env: {
      ...plain(),
      ALMANAC_DATA_DIR: data_dir,
      ALMANAC_API__BIND_HOST: "127.0.0.1",
      ALMANAC_API__BIND_PORT: "0",
      ...environment,
    },
    stdio: ["ignore", "pipe", "pipe"],
  })
  const printed = { stdout: "", stderr: "" }
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    printed.stdout += text
  })
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    printed.stderr += text
  })
  const ended = new Promise<Ended>((resolve, reject) => {
    child.on("error", reject)
    child.on("close", (code, signal) => resolve({ code, signal }))
  })
  const one = { child, pid: child.pid ?? 0, data_dir, printed, ended }
  running.add(one)
  void ended.finally(() => running.delete(one)).catch(() => undefined)
  return one
}

type Run = ReturnType<typeof runScript>

/** The end of a process's output, for failure messages. */
export const outputOf = ({ printed }: Pick<Run, "printed">) =>
  `${printed.stdout.slice(-output_chars_max)}\n${printed.stderr.slice(-output_chars_max)}`

/** Runs a command to completion. */
export const runVerb = async (
  data_dir: string,
  args: ReadonlyArray<string>,
  environment: Environment = {},
  from = root,
) => {
  const one = run(data_dir, args, environment, from)
  const late = setTimeout(() => one.child.kill("SIGKILL"), verb_ms_max)
  const { code, signal } = await one.ended
  clearTimeout(late)
  return { code, signal, pid: one.pid, ...one.printed }
}

/** Starts a command that runs until it is stopped. */
export const startVerb = (data_dir: string, args: ReadonlyArray<string>) => run(data_dir, args, {})

/** The process ids of the nats-servers that use this data folder, regardless of their parent. */
export const natsServersOn = (data_dir: string) =>
  Effect.runSync(serversOf(join(data_dir, "nats", "nats.conf")))

/** The child processes of this process. */
export const childrenOf = (pid: number): ReadonlyArray<number> =>
  execFileSync("ps", ["-A", "-o", "pid=,ppid=,stat=,comm="], { encoding: "utf8" })
    .split("\n")
    .map((line) => line.trim().split(/\s+/))
    .filter(([, parent, state, command]) => {
      const is_this_list = command === "ps"
      return Number(parent) === pid && !state?.startsWith("Z") && !is_this_list
    })
    .map(([child]) => Number(child))

/** The peak memory of a running process, in bytes; 0 without /proc. */
export const peakBytes = (pid: number) => {
  try {
    const status = readFileSync(`/proc/${pid}/status`, "utf8")
    return Number(/^VmHWM:\s+(\d+) kB$/m.exec(status)?.[1] ?? 0) * 1024
  } catch {
    return 0
  }
}

export const isRunning = (pid: number) => {
  try {
    process.kill(pid, 0)
    return true
  } catch {
    return false
  }
}

/** Kills a process immediately, if it still exists. */
export const end = (pid: number) => {
  try {
    process.kill(pid, "SIGKILL")
  } catch {
    // It has already exited.
  }
}

/** Starts a script of these tests on this data folder. */
export const startScript = (data_dir: string, args: ReadonlyArray<string>) => {
  const one = runScript(data_dir, args, {})
  /** Waits for the pattern on standard output; returns the pattern's group. */
  const waitFor = (pattern: RegExp, ms_max: number) =>
    until(`${pattern}`, ms_max, () => {
      const found = pattern.exec(one.printed.stdout)
      if (found !== null) return found[1] ?? found[0]
      if (one.child.exitCode === null && one.child.signalCode === null) return undefined
      throw new Error(`the script ended before it said ${pattern}:\n${outputOf(one)}`)
    })
  return { ...one, waitFor }
}

const credentialsIn = (data_dir: string): Credentials =>
  JSON.parse(readFileSync(join(data_dir, "dev-credentials.json"), "utf8"))

/** Starts the server and waits for its ready line; fails with its output if there is none. */
export const startServer = async (
  data_dir: string,
  environment: Environment = {},
  ms_max = ready_ms_max,
  from = root,
) => {
  const since = performance.now()
  const one = run(data_dir, ["serve"], environment, from)
  const { child, printed, ended } = one
  const url = await until(`ready:\n${outputOf(one)}`, ms_max, () => {
    if (child.exitCode !== null || child.signalCode !== null) {
      const how = child.signalCode ?? `code ${child.exitCode}`
      throw new Error(`the server ended before it was ready (${how}):\n${outputOf(one)}`)
    }
    return /^almanac ready (https?:\S+).*$/m.exec(printed.stdout)?.[1]
  })
  return {
    url,
    data_dir,
    pid: one.pid,
    printed,
    ended,
    ready_ms: performance.now() - since,
    /** Only with the embedded identity service. */
    get credentials() {
      return credentialsIn(data_dir)
    },
    signal: (signal: NodeJS.Signals) => child.kill(signal),
    /** Sends SIGKILL to the process only; the guard stops its nats-server. */
    killAlone: async () => {
      child.kill("SIGKILL")
      await ended
    },
    /** Sends SIGKILL to the process and its nats-server at the same moment. */
    killAll: async () => {
      child.kill("SIGKILL")
      for (const pid of natsServersOn(data_dir)) end(pid)
      await ended
      await until("nats-server to be gone", ready_ms_max, () => !natsServersOn(data_dir).length)
    },
    /** Sends SIGTERM and returns the exit. */
    stop: async () => {
      child.kill("SIGTERM")
      return await ended
    },
  }
}

export type Server = Awaited<ReturnType<typeof startServer>>

/** Kills all processes that a failed test left running, and removes the folders. */
export const cleanUp = async () => {
  for (const { child, data_dir, ended } of [...running]) {
    child.kill("SIGKILL")
    await ended
    for (const pid of natsServersOn(data_dir)) end(pid)
  }
  for (const folder of folders.splice(0)) {
    for (const pid of natsServersOn(folder)) end(pid)
    await until("nats-server to be gone", ready_ms_max, () => !natsServersOn(folder).length)
    rmSync(folder, { recursive: true, force: true })
  }
}
