/**
 * `almanac cluster`: runs a trial cluster of blob nodes on one machine, and queries a node's
 * cluster over HTTP.
 */

import { Console, Effect, Option, Schema } from "effect"
import { Command, Flag } from "effect/cli"
import { cluster as group } from "#cli/client/blob-storage/cluster.ts"
import { summaries } from "#cli/client/summaries.ts"
import { subcommandsOf } from "#cli/requests.ts"
import { sources } from "#cli/root.ts"
import { nodes_max } from "#schemas/blob-storage/cluster.ts"

const port_max = 65_535

/** Invalid flag values; the message says why. */
class FlagUnusable extends Schema.TaggedError<FlagUnusable>()("FlagUnusable", {
  message: Schema.String,
}) {}

const refuse = (message: string) => new FlagUnusable({ message })

export const cluster = Command.make(
  "cluster",
  {
    nodes: Flag.Int("nodes").pipe(
      Flag.withDescription(`Number of nodes, 1 to ${nodes_max} (default: 6)`),
      Flag.withDefault(6),
    ),
    dir: Flag.String("dir").pipe(
      Flag.withDescription("Folder for their data (default: temporary, deleted at the end)"),
      Flag.optional,
    ),
    port: Flag.Int("port").pipe(
      Flag.withDescription(
        "Port of the first node; the others use the next ports (default: free ports)",
      ),
      Flag.optional,
    ),
  },
  Effect.fn(function* ({ nodes, dir, port }) {
    const first = Option.getOrUndefined(port)
    if (nodes < 1 || nodes > nodes_max)
      return yield* refuse(`--nodes must be between 1 and ${nodes_max}`)
    if (first !== undefined && (first < 1 || first + nodes - 1 > port_max)) {
      return yield* refuse(
        `--port and the ports of the other nodes must be between 1 and ${port_max}`,
      )
    }
    const { demoCluster } = yield* Effect.promise(() => import("#cli/blobs/cluster-nodes.ts"))
    const running = yield* demoCluster({
      nodes,
      port: first,
      dir: Option.getOrUndefined(dir),
      sources: yield* sources,
      onStart: ({ node_id, url }) => Console.log(`node ${node_id} ${url}`),
      onEnd: (line) => Console.error(line),
    })
    yield* Console.log("cluster ready")
    for (const line of hints(running)) yield* Console.error(line)
    return yield* Effect.never
  }, Effect.scoped),
).pipe(
  Command.withDescription(summaries.cluster),
  Command.withSubcommands(subcommandsOf(group)),
  Command.withExamples([
    { command: "almanac cluster --nodes 6", description: "Run six nodes, enough for EC42" },
    {
      command: "almanac cluster --nodes 3 --dir ./cluster --port 9701",
      description: "Keep the data in a folder, on ports 9701 to 9703",
    },
  ]),
)

/** Next steps, as in docs/guide-cluster.md, which continues from here. */
const hints = ({ file, urls }: { readonly file: string; readonly urls: ReadonlyArray<string> }) => {
  const [first = "", last = first] = [urls[0], urls.at(-1)]
  const policy = urls.length >= 6 ? "EC42" : "REPLICA2"
  return [
    "",
    "The nodes run until Ctrl-C. To store a blob on one node and query another, paste this into",
    "another terminal:",
    "",
    `  TOKEN=$(node -p 'require(${JSON.stringify(file)}).token')`,
    `  curl -sS -H "Authorization: Bearer $TOKEN" -H "Content-Type: application/octet-stream" \\`,
    `    --data-binary hello "${first}/v1/blobs/stream?policy=REPLICATION_POLICY_${policy}"`,
    `  curl -sS -H "Authorization: Bearer $TOKEN" ${last}/v1/cluster/state`,
    "",
    "Continue with docs/guide-cluster.md.",
  ]
}
