/** `almanac blobs`: blobs over HTTP, and compaction of this node's store. */

import { Effect, Option } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import { blobFields, blobs as group, listBlobs } from "#cli/client/blob-storage/blob.ts"
import { blobId } from "#cli/client/blob-storage/id.ts"
import { requireColumns } from "#cli/client/columns.ts"
import { failure } from "#cli/client/failure.ts"
import { isObject } from "#cli/client/json.ts"
import { showItems, showOne } from "#cli/client/session.ts"
import { summaries } from "#cli/client/summaries.ts"
import { limit, pairs, runEach, shared, withSession } from "#cli/requests.ts"

/** Maximum number of blobs on one command line. */
const blobs_max = 10_000

const policies = ["NONE", "REPLICA2", "REPLICA3", "EC42", "EC82"] as const

const ids = Argument.String("id").pipe(
  Argument.withDescription("ID of a blob, 32 hex digits"),
  Argument.variadic({ min: 1, max: blobs_max }),
)

const scope = (of_cluster: string) =>
  Flag.Literals("scope", ["node", "cluster"]).pipe(
    Flag.withDescription(`node (this node) or cluster (${of_cluster})`),
    Flag.withDefault("node" as const),
  )

const put = Command.make(
  "put",
  {
    files: Argument.String("file").pipe(
      Argument.withDescription("File to store; - for standard input"),
      Argument.variadic({ min: 1, max: blobs_max }),
    ),
    policy: Flag.Literals("policy", policies).pipe(
      Flag.withDescription("Replication policy (default: REPLICA3)"),
      Flag.optional,
    ),
    labels: pairs("label", "Label of the blob"),
    shared,
  },
  ({ files, policy, labels, shared }) =>
    withSession(shared, async (session) => {
      const { upload } = await import("#cli/client/blob-storage/upload.ts")
      requireColumns(session.output.fields, ["id", "size", "file", "meta"])
      await runEach(
        session,
        files,
        (file) => upload(session, { file, policy: Option.getOrUndefined(policy), labels }),
        (stored) => showItems(session, stored, ["id", "size", "file"]),
      )
    }),
).pipe(
  Command.withDescription("Store files, or standard input for -, and print their IDs"),
  Command.withExamples([
    {
      command: "almanac blobs put model.bin --policy EC42 --label stage=prod",
      description: "Store a file with a label, erasure-coded on six nodes",
    },
    {
      command: "tar c data | almanac blobs put - -q",
      description: "Store a stream and print its ID",
    },
  ]),
)

const get = Command.make(
  "get",
  {
    id: Argument.String("id").pipe(Argument.withDescription("ID of the blob")),
    file: Argument.String("file").pipe(
      Argument.withDescription("Output file; - for standard output"),
      Argument.optional,
    ),
    force: Flag.Boolean("force").pipe(
      Flag.withDescription("Overwrite an existing file"),
      Flag.withDefault(false),
    ),
    shared,
  },
  ({ id, file, force, shared }) =>
    withSession(shared, async (session) => {
      const { download, print } = await import("#cli/client/blob-storage/download.ts")
      const [blob, path] = [blobId(id), Option.getOrElse(file, () => "-")]
      if (path !== "-") return showOne(session, await download(session, blob, path, force))
      if (!session.screen.is_terminal) return await print(session, blob)
      throw failure(
        "usage",
        "Binary data is not printed to a terminal: name a file, or redirect the output",
      )
    }),
).pipe(
  Command.withDescription("Download a blob; resumes an interrupted download"),
  Command.withExamples([
    {
      command: "almanac blobs get ID model.bin",
      description: "Download to a file, which is never partial",
    },
    { command: "almanac blobs get ID | tar x", description: "Stream to standard output" },
  ]),
)

const ls = Command.make(
  "list",
  {
    prefix: Flag.String("prefix").pipe(
      Flag.withDescription("Only IDs with this prefix"),
      Flag.optional,
    ),
    labels: pairs("label", "Only blobs with this label"),
    scope: scope("all nodes"),
    is_long: Flag.Boolean("long").pipe(
      Flag.withAlias("l"),
      Flag.withDescription("Show size, time, policy and labels"),
      Flag.withDefault(false),
    ),
    limit,
    shared,
  },
  ({ prefix, labels, scope, is_long, limit, shared }) =>
    withSession(shared, (session) => {
      const listing = { labels, scope, limit, is_long, prefix: Option.getOrUndefined(prefix) }
      return listBlobs(session, listing)
    }),
).pipe(
  Command.withAlias("ls"),
  Command.withDescription("List the blobs, by ID"),
  Command.withExamples([
    {
      command: "almanac blobs ls -l --label stage=prod",
      description: "Blobs with this label, with sizes",
    },
  ]),
)

const stat = Command.make(
  "stat",
  { ids, scope: scope("any node"), shared },
  ({ ids, scope, shared }) =>
    withSession(shared, async (session) => {
      const { statOf } = await import("#cli/client/blob-storage/download.ts")
      const statOne = async (id: string) => blobFields(id, await statOf(session, id, scope))
      await runEach(
        session,
        ids,
        (id) => statOne(blobId(id)),
        (found) => {
          if (ids.length === 1) showOne(session, found[0] ?? null)
          else showItems(session, found, ["id", "size", "created_at", "policy", "labels"])
        },
      )
    }),
).pipe(
  Command.withDescription(
    "Show size, time, policy, labels and checksum; exit code 4 if a blob does not exist",
  ),
  Command.withExamples([{ command: "almanac blobs stat ID", description: "Metadata of one blob" }]),
)

const rm = Command.make(
  "delete",
  { ids, scope: scope("all nodes"), shared },
  ({ ids, scope, shared }) =>
    withSession(shared, async (session) => {
      const { http, signal, output } = session
      const removeOne = async (id: string) => {
        const path = `/v1/blobs/${id}?scope=${scope}`
        const { body } = await http.json({ method: "DELETE", path, need: "blob", signal })
        return { id, ...(isObject(body) ? body : {}) }
      }
      await runEach(
        session,
        ids,
        (id) => removeOne(blobId(id)),
        (done) => {
          if (output.json || output.quiet) showItems(session, done, ["id", "deleted"])
          else session.screen.err(`Blobs deleted: ${done.length}\n`)
        },
      )
    }),
).pipe(
  Command.withAlias("rm"),
  Command.withDescription("Delete blobs from this node, or from all nodes"),
  Command.withExamples([
    { command: "almanac blobs rm ID --scope cluster", description: "Delete a blob from all nodes" },
  ]),
)

const compact = Command.make(
  "compact",
  { shared },
  Effect.fn(function* ({ shared }) {
    const { compactBlobs } = yield* Effect.promise(() => import("#cli/blobs/compact.ts"))
    yield* compactBlobs(shared)
  }),
).pipe(
  Command.withDescription(
    "Free the disk space of deleted blobs on one node; exit code 1 if some could not be freed",
  ),
  Command.withExamples([
    { command: "almanac blobs compact", description: "The node on the data folder" },
    { command: "almanac blobs compact --profile node-3", description: "The node of a profile" },
  ]),
)

export const blobs = Command.make(group.name).pipe(
  Command.withDescription(summaries[group.name]),
  Command.withExamples(put.examples),
  Command.withSubcommands([put, get, ls, stat, rm, compact]),
)
