/** `almanac demo`: servers for trying Almanac. */

import { spawn } from "node:child_process"
import { existsSync, mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join, resolve } from "node:path"
import { Console, Effect, Option, Redacted, Schema } from "effect"
import { Command, Flag } from "effect/cli"
import type { Bucket } from "#actors/share-protection/ports/buckets.ts"
import { summaries } from "#cli/client/summaries.ts"
import { root } from "../../launcher/cache.mjs"
import { findTree } from "../../launcher/trees.mjs"

/** Invalid flag values; the message says why. */
class FlagUnusable extends Schema.TaggedError<FlagUnusable>()("FlagUnusable", {
  message: Schema.String,
}) {}

const port_max = 65_535

const s3 = Command.make(
  "s3",
  {
    port: Flag.Int("port").pipe(
      Flag.withDescription("Port of 127.0.0.1; a free one if absent"),
      Flag.optional,
    ),
    folder: Flag.String("folder").pipe(
      Flag.withDescription("Empty folder that keeps it all, for over 2 GB; memory if absent"),
      Flag.optional,
    ),
  },
  Effect.fn(function* ({ port, folder }) {
    const requested_port = Option.getOrUndefined(port)
    if (requested_port !== undefined && (requested_port < 1 || requested_port > port_max)) {
      return yield* new FlagUnusable({ message: `--port is between 1 and ${port_max}` })
    }
    if (findTree("radosgw") === undefined) yield* fetchRadosgw
    const data_folder = yield* ownFolder(Option.getOrUndefined(folder))
    const store = Option.isSome(folder) ? "bluestore" : "memstore"
    // Loaded on demand, to keep other commands fast.
    const { demoBucket } = yield* Effect.promise(() => import("#cli/demo/bucket.ts"))
    const bucket = yield* demoBucket({ folder: data_folder, store, port: requested_port })
    for (const line of lines(bucket)) yield* Console.log(line)
    for (const line of hints) yield* Console.error(line)
    return yield* Effect.never
  }, Effect.scoped),
).pipe(
  Command.withDescription(
    "Run an S3 server with a bucket under object lock until Ctrl-C, which takes all of it along",
  ),
  Command.withExamples([
    {
      command: "almanac demo s3 | tee demo.env",
      description: "Lines for a shell: endpoint, access_key, secret_key and bucket",
    },
    { command: "almanac demo s3 --port 9000 --folder /var/tmp/s3", description: "Kept on disk" },
  ]),
)

export const demo = Command.make("demo").pipe(
  Command.withDescription(summaries.demo),
  Command.withExamples(s3.examples),
  Command.withSubcommands([s3]),
)

/** The launcher prints its progress and what to install by hand. */
const fetchRadosgw = Effect.callback<void>((resume) => {
  const bootstrap = join(root, "launcher", "bootstrap.mjs")
  const child = spawn(process.execPath, [bootstrap, "demo"], {
    stdio: ["ignore", "ignore", "inherit"],
  })
  child.once("error", () => resume(Effect.void))
  child.once("close", () => resume(Effect.void))
  return Effect.sync(() => child.kill())
})

/** The given folder, or a temporary one that is removed afterwards. */
const ownFolder = (given: string | undefined) => {
  if (given !== undefined && existsSync(given)) return Effect.succeed(resolve(given))
  return Effect.acquireRelease(
    Effect.sync(() => (given === undefined ? mkdtempSync(join(tmpdir(), "almanac-s3-")) : given)),
    (path) => Effect.sync(() => rmSync(path, { recursive: true, force: true })),
  ).pipe(Effect.map((path) => resolve(path)))
}

const lines = ({ endpoint, bucket, access_key, secret_key }: Bucket) => [
  `endpoint=${endpoint}`,
  `access_key=${Redacted.value(access_key)}`,
  `secret_key=${Redacted.value(secret_key)}`,
  `bucket=${bucket}`,
]

/** Next steps, as in docs/guide-share-protection.md, which continues from here. */
const hints = [
  "",
  "S3 runs until Ctrl-C. In another terminal, beside a running server:",
  "",
  "  . ./demo.env   # the lines above",
  "  tenant() { node -p \"require('./data/dev-credentials.json').tenant.$1\"; }",
  '  ref() { printf %s "$1" | ./almanac secret put --project "$(tenant project_id)"; }',
  '  curl http://localhost:9797/v1/targets -H "X-Auth-Token: $(tenant token)" \\',
  '    -H "Content-Type: application/json" -d "{\\"name\\": \\"demo\\",',
  '    \\"endpoint\\": \\"$endpoint\\", \\"bucket\\": \\"$bucket\\",',
  '    \\"trust_id\\": \\"$(tenant trust_id)\\", \\"vault_secret_map\\": {',
  '    \\"access_key\\": \\"$(ref "$access_key")\\",',
  '    \\"secret_key\\": \\"$(ref "$secret_key")\\"}}"',
  "",
  "docs/guide-share-protection.md goes on from there, to a restored file.",
]
