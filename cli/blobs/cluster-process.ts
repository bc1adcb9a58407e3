/** Runs a cluster node on this machine: `almanac serve` as a child process. */
import { type ChildProcessByStdio, spawn } from "node:child_process"
import { join } from "node:path"
import { createInterface } from "node:readline"
import type { Readable, Writable } from "node:stream"
import { Effect, Schema } from "effect"
import type { SettingsSources } from "#server/program.ts"
import { root } from "../../launcher/cache.mjs"

/** Time to stop: a server needs at most ten seconds (DECISIONS, address), more under load. */
const end_ms_max = 20_000

/** Startup lines that every node would print and the cluster prints once. */
const repeated_line = /^(?:(?:Dashboard|Console|API reference|Events|Credentials): |curl )/

/** A node did not start or failed; the message is for a person. */
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
  readonly onEnd: (line: string) => Effect.Effect<void>
}

type Child = ChildProcessByStdio<Writable, Readable, Readable>

/** The child's descriptor of our standard error, which stays open if we are killed. */
const stderr_fd = 3

const spawned = ({ data_dir, environment, sources }: NodeProcessOptions): Child => {
  const config = sources.config === "" ? [] : ["--config", sources.config]
  const set = sources.set.flatMap((one) => ["--set", one])
  const own = ["--with-parent", String(stderr_fd), ...config, ...set]
  // A separate process group: Ctrl-C reaches only the cluster, which stops the nodes in order.
  const child = spawn(process.execPath, [join(root, "launcher", "run.mjs"), "serve", ...own], {
    env: { ...process.env, ALMANAC_DATA_DIR: data_dir, ...environment },
    stdio: ["pipe", "pipe", "pipe", process.stderr.fd],
    detached: true,
  })
  // The first three descriptors are pipes; the types lose this for a list of four.
  return child as Child
}

const hasEnded = ({ exitCode, signalCode }: Child) => exitCode !== null || signalCode !== null

/** Stops the child; kills it after the timeout. */
const end = (child: Child) =>
  Effect.promise(async () => {
    if (hasEnded(child)) return
    const gone = new Promise<void>((resolve) => child.once("close", () => resolve()))
    const late = setTimeout(() => child.kill("SIGKILL"), end_ms_max)
    child.kill("SIGTERM")
    await gone
    clearTimeout(late)
  })

/** Waits for the ready line and returns its URL; fails with the last line if the child ends. */
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
      if (!repeated_line.test(line)) process.stderr.write(`${node_id}: ${line}\n`)
    })
    child.once("error", ({ message }) => failed(message))
    child.once("close", () => failed(last))
  })

/** Starts a node and waits until it is ready; it stops with the scope. */
export const startNode = Effect.fnUntraced(function* (options: NodeProcessOptions) {
  const { node_id, data_dir, onEnd } = options
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
    const outcome = signal === null ? `with exit code ${code}` : `by ${signal}`
    if (!is_over) run(onEnd(`${node_id} ended ${outcome}; the other nodes keep running`))
  })
  const node: NodeProcess = { node_id, url, data_dir, pid: child.pid ?? 0 }
  return node
})
