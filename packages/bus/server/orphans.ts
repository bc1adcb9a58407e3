/** Our own nats-servers that survived both their parent process and its guard. */
import { execFileSync } from "node:child_process"
import { readdirSync, readFileSync } from "node:fs"
import { Effect, Schedule } from "effect"
import { guard_name } from "#processes"
import { NatsServerFailed } from "./failure.ts"

/** The server's name, equal to the one in nats.conf: a reload rejects a different name. */
export const server_name = "almanac"

/** Milliseconds to wait after each signal; the store is synced, so few are needed. */
const signal_ms = 5_000
/** Milliseconds between checks for the end of the process. */
const poll_ms = 20
/** Maximum bytes of a process list, for machines without /proc. */
const list_bytes_max = 16_777_216

/**
 * The arguments of our own nats-server. The server's name identifies it in a process list, even if
 * the binary was renamed: no other program has arguments with this file followed by this name.
 */
export const natsArguments = (config_path: string): ReadonlyArray<string> => [
  "-c",
  config_path,
  "-n",
  server_name,
]

/**
 * Stops every nats-server that runs with this configuration file: one that is still stopping after
 * its parent was killed, or whose guard was killed as well. Two servers on one store both
 * acknowledge and lose data. A process is ours only if its command line matches, which is checked
 * again before each signal; stored ids are not trusted.
 */
export const endOrphans = Effect.fnUntraced(function* (config_path: string) {
  for (const signal of ["SIGTERM", "SIGKILL"] as const) {
    const orphans = yield* serversOf(config_path)
    if (orphans.length === 0) return
    const names = orphans.join(", ")
    yield* Effect.logWarning(`stopping nats-server ${names} of an earlier run with ${signal}`)
    yield* Effect.forEach(orphans, (pid) => send(pid, signal))
    yield* serversOf(config_path).pipe(
      Effect.repeat({ until: (left) => left.length === 0, schedule: Schedule.spaced(poll_ms) }),
      Effect.timeoutOption(signal_ms),
    )
  }
  const left = yield* serversOf(config_path)
  if (left.length === 0) return
  return yield* new NatsServerFailed({
    message:
      `nats-server ${left.join(", ")} uses this data folder and could not be stopped: stop ` +
      `it.`,
  })
})

/** The ids of the processes that run nats-server with this configuration file. */
export const serversOf = (config_path: string) =>
  Effect.try({
    try: () =>
      (process.platform === "linux"
        ? fromProc(config_path)
        : fromPs(config_path)) satisfies ReadonlyArray<number>,
    catch: (cause) =>
      new NatsServerFailed({ message: `The list of processes cannot be read: ${cause}` }),
  })

/** Ignores failures: the next check finds a process that is still running. */
const send = (pid: number, signal: NodeJS.Signals) =>
  Effect.ignore(Effect.try({ try: () => process.kill(pid, signal), catch: String }))

const fromProc = (config_path: string) => {
  const own_arguments = natsArguments(config_path)
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((pid) => {
      const [, ...args] = commandLine(pid)
      return own_arguments.every((word, at) => args[at] === word)
    })
}

const commandLine = (pid: number): ReadonlyArray<string> => {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, "utf8").split("\0")
  } catch {
    // The process ended after the folder was listed.
    return []
  }
}

const fromPs = (config_path: string) =>
  execFileSync("ps", ["-A", "-ww", "-o", "pid=,command="], {
    encoding: "utf8",
    maxBuffer: list_bytes_max,
  })
    .split("\n")
    .filter((line) => line.trimEnd().endsWith(` ${natsArguments(config_path).join(" ")}`))
    .filter((line) => !line.includes(guard_name))
    .map((line) => Number.parseInt(line, 10))
