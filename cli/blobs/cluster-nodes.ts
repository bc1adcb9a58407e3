/**
 * Runs the nodes of one cluster as processes on this machine: the first runs the bus, and the
 * others join through it.
 */
import { randomBytes } from "node:crypto"
import { mkdtempSync, rmSync, statfsSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Effect, Option, Redacted, Schedule, Schema, Scope } from "effect"
import { findInstance } from "#adapters/data-folder/instance-file.ts"
import { lockFolder } from "#adapters/data-folder/lock.ts"
import { sha256Of } from "#adapters/identity/token-store.ts"
import { ClusterNodeFailed, type NodeProcess, startNode } from "#cli/blobs/cluster-process.ts"
import { writePrivate } from "#files"
import type { SettingsSources } from "#server/program.ts"

/** Share of the disk for blobs; the rest is for logs, read models and other programs. */
const capacity_share = 0.9

/** Timeout for all nodes to see one another, and its polling interval. */
const joined_ms_max = 30_000
const poll_ms = 100

/** Options of a demo cluster. */
export interface DemoClusterOptions {
  readonly nodes: number
  /** The first node's port; undefined: free ports. */
  readonly port: number | undefined
  /** Folder for their data; undefined: a temporary folder. */
  readonly dir: string | undefined
  readonly sources: SettingsSources
  readonly onStart: (node: NodeProcess) => Effect.Effect<void>
  /** Called if a node ends unexpectedly. */
  readonly onEnd: (line: string) => Effect.Effect<void>
}

type Environment = Readonly<Record<string, string>>

/** The failure if another cluster runs in the folder. */
const inUse = (dir: string, pid: number | null) => {
  const holder = pid === null ? "another process" : `process ${pid}`
  const message = `${dir} is in use by ${holder}: stop that cluster first, or use another --dir`
  return new ClusterNodeFailed({ message })
}

const folderOf = (dir: string | undefined) => {
  if (dir === undefined) {
    return Effect.acquireRelease(
      Effect.sync(() => mkdtempSync(join(tmpdir(), "almanac-cluster-"))),
      (path) => Effect.sync(() => rmSync(path, { recursive: true, force: true })),
    )
  }
  return lockFolder(dir, ["run"]).pipe(
    Effect.map(({ path }) => path),
    Effect.catchTags({
      DataFolderLocked: ({ path, pid }) => Effect.fail(inUse(path, pid)),
      DataFolderUnusable: ({ path, reason }) =>
        Effect.fail(new ClusterNodeFailed({ message: `${path} cannot be used: ${reason}` })),
    }),
  )
}

/** Drops variables that the user's environment sets. */
const unlessSet = (environment: Environment): Environment =>
  Object.fromEntries(Object.entries(environment).filter(([name]) => !(name in process.env)))

/** Environment of all nodes: one secret, one token, and an equal share of the disk. */
const common = (folder: string, nodes: number, token: string): Environment => {
  const { bavail, bsize } = statfsSync(folder)
  const sha256 = sha256Of(token)
  const scopes = ["blobs:read", "blobs:write", "cluster:admin"]
  return {
    ALMANAC_API__BIND_HOST: "127.0.0.1",
    ALMANAC_CLUSTER__SECRET: randomBytes(32).toString("base64url"),
    ALMANAC_AUTH__TOKENS: JSON.stringify([{ name: "cluster", sha256, scopes }]),
    ...unlessSet({
      ALMANAC_SERVICES: "blob-storage",
      ALMANAC_LOG__LEVEL: "warning",
      ALMANAC_CLUSTER__CAPACITY_BYTES: String(
        Math.floor((bavail * bsize * capacity_share) / nodes),
      ),
    }),
  }
}

/** Environment for joining the first node's bus, whose address and password change per start. */
const busOf = Effect.fnUntraced(function* ({ node_id, data_dir, url }: NodeProcess) {
  const found = yield* findInstance(data_dir)
  if (Option.isNone(found)) {
    return yield* new ClusterNodeFailed({
      message: `${node_id} published no instance file with the address of its bus`,
    })
  }
  const { nats } = found.value
  return {
    ALMANAC_NATS__URL: nats.url,
    ALMANAC_NATS__USER: nats.user,
    ALMANAC_NATS__PASSWORD: Redacted.value(nats.password),
    ALMANAC_CLUSTER__JOIN: url,
  }
})

const State = Schema.Struct({
  nodes: Schema.Array(Schema.Struct({ node_id: Schema.String, state: Schema.String })),
})

/** Whether this node sees all nodes as active. */
const seesAll = (url: string, token: string, node_ids: ReadonlyArray<string>) =>
  Effect.tryPromise(async () => {
    const headers = { authorization: `Bearer ${token}` }
    const response = await fetch(new URL("/v1/cluster/state", url), { headers })
    const { nodes } = Schema.decodeUnknownSync(State)(await response.json())
    const active = nodes.filter(({ state }) => state === "active").map(({ node_id }) => node_id)
    return node_ids.every((node_id) => active.includes(node_id))
  }).pipe(Effect.catch(() => Effect.succeed(false)))

const everyNodeSeesAll = (nodes: ReadonlyArray<NodeProcess>, token: string) => {
  const node_ids = nodes.map(({ node_id }) => node_id)
  const seen = Effect.forEach(nodes, ({ url }) => seesAll(url, token, node_ids), {
    concurrency: "unbounded",
  })
  return seen.pipe(
    Effect.map((all) => all.every((is_so) => is_so)),
    Effect.repeat({
      until: (is_so) => is_so,
      schedule: Schedule.spaced(poll_ms),
      times: joined_ms_max / poll_ms,
    }),
    Effect.flatMap((is_so) =>
      is_so
        ? Effect.void
        : new ClusterNodeFailed({
            message: `the nodes did not find one another within ${joined_ms_max / 1000} s`,
          }),
    ),
  )
}

/** Starts the nodes, which stop with the scope: the first one last, because it runs the bus. */
export const demoCluster = Effect.fnUntraced(function* (options: DemoClusterOptions) {
  const { nodes, port, sources, onStart, onEnd } = options
  const folder = yield* folderOf(options.dir)
  const token = `almanac-${randomBytes(24).toString("base64url")}`
  const environment = common(folder, nodes, token)
  const start = Effect.fnUntraced(function* (number: number, more: Environment) {
    const node_id = `node-${number}`
    const node = yield* startNode({
      node_id,
      data_dir: join(folder, node_id),
      sources,
      onEnd,
      environment: {
        ...environment,
        ALMANAC_CLUSTER__NODE_ID: node_id,
        ALMANAC_API__BIND_PORT: port === undefined ? "0" : String(port + number - 1),
        ...more,
      },
    })
    yield* onStart(node)
    return node
  })
  const first = yield* start(1, {})
  const bus = yield* busOf(first)
  const numbers = Array.from({ length: nodes - 1 }, (_, n) => n + 2)
  // They stop in parallel, before the first.
  const together = yield* Scope.fork(yield* Effect.scope, "parallel")
  // One audit index is enough; each costs its node more than its own data.
  const more = { ...bus, ...unlessSet({ ALMANAC_AUDIT__INDEX: "false" }) }
  const others = yield* Effect.forEach(numbers, (number) => start(number, more), {
    concurrency: "unbounded",
  }).pipe(Scope.provide(together))
  const all = [first, ...others]
  yield* everyNodeSeesAll(all, token)
  const file = join(folder, "cluster.json")
  const listed = all.map(({ node_id, url, pid }) => ({ node_id, url, pid }))
  yield* writePrivate(file, `${JSON.stringify({ token, nodes: listed })}\n`)
  return { file, urls: all.map(({ url }) => url) }
})
