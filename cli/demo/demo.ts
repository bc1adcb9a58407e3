/** `almanac demo`: servers for trying Almanac. */

import { spawn } from "node:child_process"
import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join, resolve } from "node:path"
import { Console, Effect, Option, Redacted, Schema } from "effect"
import { Command, Flag } from "effect/cli"
import type { Bucket } from "#actors/share-protection/ports/buckets.ts"
import { findInstance } from "#adapters/data-folder/instance-file.ts"
import { summaries } from "#cli/client/summaries.ts"
import { settings } from "#cli/root.ts"
import { root } from "../../launcher/cache.mjs"
import { findTree } from "../../launcher/trees.mjs"

/** Invalid flag values; the message names the reason. */
class FlagUnusable extends Schema.TaggedError<FlagUnusable>()("FlagUnusable", {
  message: Schema.String,
}) {}

const port_max = 65_535

const s3 = Command.make(
  "s3",
  {
    port: Flag.Int("port").pipe(
      Flag.withDescription("Port on 127.0.0.1 (default: a free port)"),
      Flag.optional,
    ),
    folder: Flag.String("folder").pipe(
      Flag.withDescription("Empty folder for the objects, with over 2 GB free (default: memory)"),
      Flag.optional,
    ),
  },
  Effect.fn(function* ({ port, folder }) {
    const requested_port = Option.getOrUndefined(port)
    if (requested_port !== undefined && (requested_port < 1 || requested_port > port_max)) {
      return yield* new FlagUnusable({ message: `--port must be between 1 and ${port_max}` })
    }
    if (findTree("radosgw") === undefined) yield* fetchRadosgw
    const data_folder = yield* ownFolder(Option.getOrUndefined(folder))
    const store = Option.isSome(folder) ? "bluestore" : "memstore"
    // Loaded on demand, to keep other commands fast.
    const { demoBucket } = yield* Effect.promise(() => import("#cli/demo/bucket.ts"))
    const bucket = yield* demoBucket({ folder: data_folder, store, port: requested_port })
    for (const line of lines(bucket)) yield* Console.log(line)
    const { data } = yield* settings
    const target = { bucket, file: yield* credentialsFile(bucket), data_dir: resolve(data.dir) }
    const url = Option.getOrUndefined(yield* findInstance(data.dir))?.url
    for (const line of hints(target, url)) yield* Console.error(line)
    return yield* Effect.never
  }, Effect.scoped),
).pipe(
  Command.withDescription(
    "Run an S3 server with an object-lock bucket until Ctrl-C, which deletes all of its objects",
  ),
  Command.withExamples([
    {
      command: "almanac demo s3 | tee demo.env",
      description: "Shell variables: endpoint, access_key, secret_key and bucket",
    },
    {
      command: "almanac demo s3 --port 9000 --folder /var/tmp/s3",
      description: "On disk instead of in memory",
    },
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

/** A private file with the lines for a shell, which is removed with the scope. */
const credentialsFile = (bucket: Bucket) =>
  Effect.acquireRelease(
    Effect.sync(() => mkdtempSync(join(tmpdir(), "almanac-demo-"))),
    (path) => Effect.sync(() => rmSync(path, { recursive: true, force: true })),
  ).pipe(
    Effect.map((folder) => {
      const path = join(folder, "demo.env")
      writeFileSync(path, `${lines(bucket).join("\n")}\n`, { mode: 0o600 })
      return path
    }),
  )

interface DemoTarget {
  readonly bucket: Bucket
  /** The file with the credentials, which are never on a command line. */
  readonly file: string
  readonly data_dir: string
}

/** Commands that register the bucket as a target of the server on this data folder. */
const hints = ({ bucket: { endpoint, bucket }, file, data_dir }: DemoTarget, url?: string) => {
  const almanac = join(root, "almanac")
  const server = url === undefined ? "Start a server with npm start" : `A server runs on ${url}`
  return [
    "",
    `The S3 server runs on ${endpoint} until Ctrl-C. Its bucket is ${bucket}.`,
    `${server}. To register the bucket as a target, paste this into another terminal:`,
    "",
    `  export ALMANAC_DATA_DIR='${data_dir}'`,
    `  . '${file}'`,
    "  tenant() {",
    "    node -p \"require('$ALMANAC_DATA_DIR/dev-credentials.json').tenant.$1\"",
    "  }",
    `  secret() { printf %s "$1" | '${almanac}' secret put --project "$(tenant project_id)"; }`,
    `  '${almanac}' targets create --name demo --endpoint ${endpoint} --bucket ${bucket} \\`,
    '    --trust-id "$(tenant trust_id)" --access-key "$(secret "$access_key")" \\',
    '    --secret-key "$(secret "$secret_key")" --wait',
    "",
    "Continue with docs/guide-share-protection.md.",
  ]
}
