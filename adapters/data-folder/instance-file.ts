/** `run/instance.json` in the data folder: address of the running instance, for CLI commands. */
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { Effect, Option, Schema, Struct } from "effect"
import { RunningSettings } from "#adapters/health/running-settings.ts"
import { type FileFailure, findBounded, removeFile, writePrivate } from "#files"

const Secret = Schema.RedactedFromValue(Schema.String)

/** A running instance. Source: decisions, "commands and a running server". */
export const Instance = Schema.Struct({
  /** The HTTP address, `http://127.0.0.1:9797` for example. */
  url: Schema.String,
  /** Absolute path of its certificate; absent without TLS, and in older files. */
  tls_cert: Schema.optionalKey(Schema.String),
  nats: Schema.Struct({ url: Schema.String, user: Schema.String, password: Secret }),
  /** Login of the publisher, if published events have a separate account. */
  events: Schema.optionalKey(Schema.Struct({ user: Schema.String, password: Secret })),
  /** Token of CLI commands for the instance's control paths. */
  control_token: Secret,
  pid: Schema.Int,
  /** Its settings, for health checks; absent in older files. */
  settings: Schema.optionalKey(RunningSettings),
  /** RFC 3339, UTC. */
  started_at: Schema.String,
})

export type Instance = typeof Instance.Type

/** Includes the process's start time, because process ids are reused. */
const File = Schema.fromJsonString(
  Schema.Struct({ ...Instance.fields, process_start: Schema.NullOr(Schema.String) }),
)

const file_bytes_max = 2 ** 20

const pathIn = (data_dir: string) => join(data_dir, "run", "instance.json")

/**
 * Writes the file (0600), and removes it when the scope closes unless another process took over.
 */
export const publishInstance = (data_dir: string, instance: Instance) => {
  const file = { ...instance, process_start: processStart(instance.pid) }
  const write = writePrivate(pathIn(data_dir), Schema.encodeSync(File)(file))
  return Effect.acquireRelease(write, () => Effect.ignore(withdraw(data_dir, instance)))
}

const withdraw = Effect.fnUntraced(function* (data_dir: string, { pid, started_at }: Instance) {
  const found = yield* readFile(data_dir)
  if (Option.isNone(found)) return
  const is_ours = found.value.pid === pid && found.value.started_at === started_at
  if (is_ours) yield* removeFile(pathIn(data_dir))
})

/** Finds the instance that runs on this data folder; none if its process is gone. */
export const findInstance = (
  data_dir: string,
): Effect.Effect<Option.Option<Instance>, FileFailure> =>
  Effect.map(readFile(data_dir), (found) =>
    Option.map(Option.filter(found, isRunning), Struct.omit(["process_start"])),
  )

/**
 * Reads the file. An unreadable file counts as no instance, which is safe because the data folder
 * is still locked.
 */
const readFile = (data_dir: string) =>
  Effect.map(
    findBounded(pathIn(data_dir), file_bytes_max),
    Option.flatMap((text) => Schema.decodeUnknownOption(File)(text)),
  )

const isRunning = ({ pid, process_start }: typeof File.Type) =>
  exists(pid) && processStart(pid) === process_start

const exists = (pid: number) => {
  // Zero and negative values would signal process groups.
  if (pid <= 0) return false
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    // EPERM: the process exists and belongs to another user.
    return error instanceof Error && "code" in error && error.code === "EPERM"
  }
}

/** Start time: field 22 of proc(5)'s stat, in ticks since boot; null without /proc. */
const processStart = (pid: number) => {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "latin1")
    // The second field, the command in parentheses, may contain anything; 20 more follow it.
    return stat.slice(stat.lastIndexOf(")") + 2).split(" ")[19] ?? null
  } catch {
    return null
  }
}
