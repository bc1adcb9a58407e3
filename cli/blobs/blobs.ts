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

const ids = Argument.String("id").pipe(Argument.variadic({ min: 1, max: blobs_max }))

const scope = (of_cluster: string) =>
  Flag.Literals("scope", ["node", "cluster"]).pipe(
    Flag.withDescription(`node: this node's; cluster: ${of_cluster}`),
    Flag.withDefault("node" as const),
  )

const put = Command.make(
  "put",
  {
    files: Argument.String("file").pipe(Argument.variadic({ min: 1, max: blobs_max })),
    policy: Flag.Literals("policy", policies).pipe(
      Flag.withDescription("Copies or erasure code; REPLICA3 by default"),
      Flag.optional,
    ),
    labels: pairs("label", "A label"),
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
  Command.withDescription("Store files, or standard input for -; prints their ids"),
  Command.withExamples([
    {
      command: "almanac blobs put model.bin --policy EC42 --label stage=prod",
      description: "With a label, on six nodes",
    },
    { command: "tar c data | almanac blobs put - -q", description: "A stream; prints its id" },
  ]),
)

const get = Command.make(
  "get",
  {
    id: Argument.String("id"),
    file: Argument.String("file").pipe(Argument.optional),
    force: Flag.Boolean("force").pipe(
      Flag.withDescription("Replace the file if it exists"),
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
      throw failure("usage", "A blob is no text for a terminal: name a file, or redirect it")
    }),
).pipe(
  Command.withDescription("Fetch a blob; a file that was not finished is gone on with"),
  Command.withExamples([
    { command: "almanac blobs get ID model.bin", description: "Into a file, whole or not at all" },
    { command: "almanac blobs get ID | tar x", description: "To standard output" },
  ]),
)

const ls = Command.make(
  "list",
  {
    prefix: Flag.String("prefix").pipe(
      Flag.withDescription("Only ids that begin so"),
      Flag.optional,
    ),
    labels: pairs("label", "Only blobs with this label"),
    scope: scope("of all nodes"),
    is_long: Flag.Boolean("long").pipe(
      Flag.withAlias("l"),
      Flag.withDescription("With size, time, policy and labels"),
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
  Command.withDescription("The blobs, by id"),
  Command.withExamples([
    { command: "almanac blobs ls -l --label stage=prod", description: "Sizes and labels too" },
  ]),
)

const stat = Command.make(
  "stat",
  { ids, scope: scope("on any node"), shared },
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
    "Size, time, policy, labels and checksum; exit code 4 if it is not there",
  ),
  Command.withExamples([{ command: "almanac blobs stat ID", description: "All about it" }]),
)

const rm = Command.make(
  "delete",
  { ids, scope: scope("from every node"), shared },
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
          else session.screen.err(`${done.length} deleted\n`)
        },
      )
    }),
).pipe(
  Command.withAlias("rm"),
  Command.withDescription("Delete blobs from this node, or from every one"),
  Command.withExamples([
    { command: "almanac blobs rm ID --scope cluster", description: "From every node" },
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
    "Give the space of deleted blobs back to one node's disk now; exit code 1 when some stays",
  ),
  Command.withExamples([
    { command: "almanac blobs compact", description: "The node on this data folder" },
    { command: "almanac blobs compact --profile node-3", description: "Another node" },
  ]),
)

export const blobs = Command.make(group.name).pipe(
  Command.withDescription(summaries[group.name]),
  Command.withExamples(put.examples),
  Command.withSubcommands([put, get, ls, stat, rm, compact]),
)
