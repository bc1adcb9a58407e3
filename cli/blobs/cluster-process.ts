/** A node of a cluster on this machine: `almanac serve` as a child process. */
import { type ChildProcessByStdio, spawn } from "node:child_process"
import { join } from "node:path"
import { createInterface } from "node:readline"
import type { Readable, Writable } from "node:stream"
import { Effect, Schema } from "effect"
import type { SettingsSources } from "#server/program.ts"
import { root } from "../../launcher/cache.mjs"

/** DECISIONS, address: a server ends within ten seconds; a machine under load gets more. */
const end_ms_max = 20_000

/** What a server says of itself at its start, which the cluster says once for all. */
const said_by_each = /^(?:Credentials: |curl )/

/** A node that does not start, or does not do what it must; the message is for a person. */
export class ClusterNodeFailed extends Schema.TaggedError<ClusterNodeFailed>()(
  "ClusterNodeFailed",
  { message: Schema.String },
) {}

export interface NodeProcess {
  readonly node_id: string
  readonly url: string
  readonly data_dir: string
  readonly pid: number
}

export interface NodeProcessOptions {
  readonly node_id: string
  readonly data_dir: string
  readonly environment: Readonly<Record<string, string>>
  readonly sources: SettingsSources
  readonly ended: (line: string) => Effect.Effect<void>
}

type Child = ChildProcessByStdio<Writable, Readable, Readable>

/** The child's descriptor of our own standard error, which stays when we are killed. */
const told_fd = 3

const spawned = ({ data_dir, environment, sources }: NodeProcessOptions): Child => {
  const config = sources.config === "" ? [] : ["--config", sources.config]
  const set = sources.set.flatMap((one) => ["--set", one])
  const own = ["--with-parent", String(told_fd), ...config, ...set]
  // A group of its own: Ctrl-C at a terminal comes to the cluster, which ends them in order.
  const child = spawn(process.execPath, [join(root, "launcher", "run.mjs"), "serve", ...own], {
    env: { ...process.env, ALMANAC_DATA_DIR: data_dir, ...environment },
    stdio: ["pipe", "pipe", "pipe", process.stderr.fd],
    detached: true,
  })
  // Three of its descriptors are pipes to us, which the types of a list of four do not say.
  return child as Child
}

const hasEnded = ({ exitCode, signalCode }: Child) => exitCode !== null || signalCode !== null

/** Told to end, and what does not is ended. */
const end = (child: Child) =>
  Effect.promise(async () => {
    if (hasEnded(child)) return
    const gone = new Promise<void>((resolve) => child.once("close", () => resolve()))
    const late = setTimeout(() => child.kill("SIGKILL"), end_ms_max)
    child.kill("SIGTERM")
    await gone
    clearTimeout(late)
  })

/** The line in which it says that it is ready; fails with its last words where it ends instead. */
const ready = (child: Child, { node_id }: NodeProcessOptions) =>
  Effect.callback<string, ClusterNodeFailed>((resume) => {
    let last = ""
    const failed = (why: string) =>
      resume(Effect.fail(new ClusterNodeFailed({ message: `${node_id} did not start: ${why}` })))
    createInterface({ input: child.stdout }).on("line", (line) => {
      const [, url] = /^almanac ready (https?:\S+)/.exec(line) ?? []
      if (url !== undefined) resume(Effect.succeed(url))
    })
    createInterface({ input: child.stderr }).on("line", (line) => {
      last = line
      if (!said_by_each.test(line)) process.stderr.write(`${node_id}: ${line}\n`)
    })
    child.once("error", ({ message }) => failed(message))
    child.once("close", () => failed(last))
  })

/** Starts a node and waits until it is ready; it ends with the scope. */
export const startNode = Effect.fnUntraced(function* (options: NodeProcessOptions) {
  const { node_id, data_dir, ended } = options
  let is_over = false
  const child = yield* Effect.acquireRelease(
    Effect.sync(() => spawned(options)),
    (child) =>
      Effect.suspend(() => {
        is_over = true
        return end(child)
      }),
  )
  const url = yield* ready(child, options)
  const run = Effect.runForkWith(yield* Effect.context<never>())
  child.once("close", (code, signal) => {
    const how = signal === null ? `with ${code}` : `by ${signal}`
    if (!is_over) run(ended(`${node_id} ended ${how}; the others go on`))
  })
  const node: NodeProcess = { node_id, url, data_dir, pid: child.pid ?? 0 }
  return node
})
