/** Where a running instance is: `run/instance.json` in the data folder, for the verbs beside it. */
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { Effect, Option, Schema, Struct } from "effect"
import { RunningSettings } from "#adapters/health/running-settings.ts"
import { type FileFailure, findBounded, removeFile, writePrivate } from "#files"

const Secret = Schema.RedactedFromValue(Schema.String)

/** A running instance, as it says of itself. Source: decisions, "verbs beside a running server". */
export const Instance = Schema.Struct({
  /** The HTTP address, `http://127.0.0.1:9797` for example. */
  url: Schema.String,
  /** The certificate that it shows, as an absolute path; absent without TLS, and in older files. */
  tls_cert: Schema.optionalKey(Schema.String),
  nats: Schema.Struct({ url: Schema.String, user: Schema.String, password: Secret }),
  /** Who keeps the published events, where they have an account of their own. */
  events: Schema.optionalKey(Schema.Struct({ user: Schema.String, password: Secret })),
  /** What a verb shows to the instance's own control paths. */
  control_token: Secret,
  pid: Schema.Int,
  /** What it runs with, for those who judge it; absent in older files. */
  settings: Schema.optionalKey(RunningSettings),
  /** RFC 3339, UTC. */
  started_at: Schema.String,
})

export type Instance = typeof Instance.Type

/** With the kernel's start time of the process, since process ids come again. */
const File = Schema.fromJsonString(
  Schema.Struct({ ...Instance.fields, process_start: Schema.NullOr(Schema.String) }),
)

const file_bytes_max = 2 ** 20

const pathIn = (data_dir: string) => join(data_dir, "run", "instance.json")

/** Writes the file (0600) and removes it when the scope closes, unless another has taken over. */
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

/** Answers the instance that runs on this data folder; none when its process is gone. */
export const findInstance = (
  data_dir: string,
): Effect.Effect<Option.Option<Instance>, FileFailure> =>
  Effect.map(readFile(data_dir), (found) =>
    Option.map(Option.filter(found, isRunning), Struct.omit(["process_start"])),
  )

/** A file that is not ours to read names no instance: the data folder's lock still protects. */
const readFile = (data_dir: string) =>
  Effect.map(
    findBounded(pathIn(data_dir), file_bytes_max),
    Option.flatMap((text) => Schema.decodeUnknownOption(File)(text)),
  )

const isRunning = ({ pid, process_start }: typeof File.Type) =>
  exists(pid) && processStart(pid) === process_start

const exists = (pid: number) => {
  // Zero and below would ask about groups of processes.
  if (pid <= 0) return false
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    // A process of another user is there as well.
    return error instanceof Error && "code" in error && error.code === "EPERM"
  }
}

/** The 22nd field of proc(5)'s stat, in ticks since the boot; null where there is no /proc. */
const processStart = (pid: number) => {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "latin1")
    // The second field is the command in brackets and may hold anything; 20 more follow it.
    return stat.slice(stat.lastIndexOf(")") + 2).split(" ")[19] ?? null
  } catch {
    return null
  }
}
