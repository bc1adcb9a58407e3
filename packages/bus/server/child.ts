/** One nats-server process: started, awaited until ready, and stopped with its scope. */
import type { ChildProcess } from "node:child_process"
import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { createInterface } from "node:readline"
import type { Readable } from "node:stream"
import { Deferred, Effect, Schedule, Schema } from "effect"
import { StopDeadline, spawnGuarded } from "#processes"
import { NatsServerFailed } from "./failure.ts"
import { natsArguments } from "./orphans.ts"

/** The environment variable with the port, which the configuration references (`port: $...`). */
const port_variable = "ALMANAC_NATS_PORT"

/** Options of a child; `environment` is its complete environment. */
export interface NatsChildOptions {
  readonly binary: string
  readonly config_path: string
  readonly folder: string
  readonly ports: string
  readonly environment: Readonly<Record<string, string>>
  /** Called with each line that the child logs. */
  readonly onLine?: (line: string) => void
}

/** A running child. */
export interface NatsChild {
  readonly pid: number
  /** Completes when the process ends, with the cause, for example "signal SIGKILL". */
  readonly ended: Effect.Effect<string>
  /** Completes with the port once the server accepts connections and its store is recovered. */
  readonly port: Effect.Effect<number, NatsServerFailed>
  /** Reloads the configuration. Before the child is ready the signal would kill it. */
  readonly reload: Effect.Effect<void>
}

/** Shutdown timeout of the server in milliseconds, within the deadline of the whole shutdown. */
const stop_ms = 5_000
/** Milliseconds between polls for the ports file, which 2.15 writes 11 to 80 ms after start. */
const poll_ms = 10
/**
 * Startup timeout in milliseconds: 1,000,000 messages took 540, and 100 times more are possible.
 */
const ready_ms = 60_000
/** Lines kept for the message of a failed start, and characters of one line. */
const lines_max = 5
const line_chars_max = 2_000

/**
 * Starts nats-server on `port` (-1: any free one) in its own session, so that Ctrl-C in the
 * terminal reaches only this process. Sends SIGTERM when the scope closes, and SIGKILL at most 5 s
 * later; the guard does the same if this process is killed.
 */
export const natsChild = Effect.fnUntraced(function* (options: NatsChildOptions, port: number) {
  const context = yield* Effect.context()
  const log = Effect.runForkWith(context)
  const lines: Array<string> = []
  const ended = yield* Deferred.make<string>()
  const handleLine = (line: string) => {
    const text = redact(line.slice(0, line_chars_max), options.environment)
    lines.push(text)
    lines.splice(0, lines.length - lines_max)
    options.onLine?.(text)
    log(logged(text))
  }
  const child = yield* Effect.acquireRelease(start(options, port, ended, handleLine), (running) =>
    stop(running, Deferred.await(ended)),
  )
  const dead = Effect.flatMap(Deferred.await(ended), (reason) =>
    Effect.fail(failed(`nats-server exited (${reason}) before it was ready`, lines)),
  )
  return {
    pid: child.pid,
    ended: Deferred.await(ended),
    port: Effect.raceFirst(ready(options.ports, child.pid, lines), dead),
    reload: Effect.sync(() => child.kill("SIGHUP")),
  } satisfies NatsChild
})

type Running = ChildProcess & { readonly pid: number }

const start = (
  { binary, config_path, folder, environment }: NatsChildOptions,
  port: number,
  ended: Deferred.Deferred<string>,
  handleLine: (line: string) => void,
) =>
  Effect.callback<Running, NatsServerFailed>((resume) => {
    const child = spawnGuarded(binary, natsArguments(config_path), {
      cwd: folder,
      env: { ...environment, [port_variable]: `${port}` },
      stdio: ["ignore", "pipe", "pipe"],
    })
    for (const output of [child.stdout, child.stderr]) if (output) listen(output, handleLine)
    child.once("error", (error) => {
      resume(Effect.fail(failed(`${binary} cannot be run: ${error.message}`, [])))
    })
    // Not "exit": output may still be pending then.
    child.once("close", (code, signal) => {
      Deferred.doneUnsafe(ended, Effect.succeed(signal ? `signal ${signal}` : `code ${code}`))
    })
    // The process id is defined once Node emits this event.
    child.once("spawn", () => resume(Effect.succeed(child as Running)))
  })

const listen = (output: Readable, handleLine: (line: string) => void) =>
  createInterface({ input: output }).on("line", handleLine)

const stop = (child: ChildProcess, ended: Effect.Effect<string>) =>
  Effect.gen(function* () {
    child.kill("SIGTERM")
    const wait_ms = yield* (yield* StopDeadline).rest(stop_ms)
    const reason = yield* Effect.timeoutOption(ended, wait_ms)
    if (reason._tag === "Some") return
    yield* Effect.logWarning(
      `nats-server did not stop within ${Math.round(wait_ms)} ms and was killed`,
    )
    child.kill("SIGKILL")
    yield* ended
  })

const Ports = Schema.fromJsonString(Schema.Struct({ nats: Schema.NonEmptyArray(Schema.String) }))

const ready = (ports: string, pid: number, lines: ReadonlyArray<string>) =>
  Effect.suspend(() => {
    const name = readdirSync(ports).find((file) => file.endsWith(`_${pid}.ports`))
    return Schema.decodeEffect(Ports)(name ? readFileSync(join(ports, name), "utf8") : "")
  }).pipe(
    // The file may be missing or incomplete.
    Effect.retry({ schedule: Schedule.spaced(poll_ms) }),
    Effect.orDie,
    Effect.map(({ nats: [url] }) => Number(new URL(url).port)),
    Effect.timeoutOrElse({
      duration: ready_ms,
      orElse: () => Effect.fail(failed(`nats-server was not ready after ${ready_ms} ms`, lines)),
    }),
  )

const failed = (what: string, lines: ReadonlyArray<string>) =>
  new NatsServerFailed({ message: [what, ...lines].join("; ") })

const redact = (line: string, environment: Readonly<Record<string, string>>) =>
  Object.values(environment).reduce((text, secret) => text.replaceAll(secret, "<redacted>"), line)

/** Converts the child's "[pid] [LVL] text" to a log line of ours; its info lines become debug. */
const logged = (line: string) => {
  const [, level = "", text = line] = /^\[\d+\] \[(\w{3})\] (.*)$/.exec(line) ?? []
  const log = text === expected_warning ? Effect.logDebug : (levels[level] ?? Effect.logDebug)
  return log(text).pipe(Effect.annotateLogs({ process: "nats-server" }))
}

/** Logged at each start. Our passwords are 192 random bits that live as long as the process. */
const expected_warning = "Plaintext passwords detected, use nkeys or bcrypt"

const levels: Readonly<Record<string, (text: string) => Effect.Effect<void>>> = {
  WRN: Effect.logWarning,
  ERR: Effect.logError,
  FTL: Effect.logError,
}
