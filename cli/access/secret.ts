/** `almanac secret put`: stores a project's secret in the embedded secrets manager. */

import { Console, Effect, Option, Schema, Stdio, Stream } from "effect"
import { Command, Flag } from "effect/cli"
import { DataFolder } from "#adapters/data-folder/lock.ts"
import { openVault, secretKeeper } from "#adapters/share-protection/vault-embedded.ts"
import { summaries } from "#cli/client/summaries.ts"
import { callInstance, instance } from "#cli/instance.ts"
import { embeddedSettings } from "#cli/root.ts"
import { SecretRequest, secret_bytes_max } from "#schemas/secret.ts"

const Put = Schema.fromJsonString(Schema.Struct({ href: Schema.String }))

/** Standard input is not a valid secret; the message never contains it. */
class InputUnusable extends Schema.TaggedError<InputUnusable>()("InputUnusable", {
  message: Schema.String,
}) {}

const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true })

/** The trailing newline that a shell adds. */
const line_end = /\r?\n$/

/** Reads standard input, at most one byte more than allowed. */
const payload = Effect.gen(function* () {
  const { stdin } = yield* Stdio.Stdio
  let bytes = 0
  const parts = yield* stdin.pipe(
    Stream.takeUntil((part) => {
      bytes += part.length
      return bytes > secret_bytes_max + "\r\n".length
    }),
    Stream.runCollect,
  )
  return yield* Effect.try({
    try: () => utf8.decode(Buffer.concat(parts)).replace(line_end, ""),
    catch: () => new InputUnusable({ message: "standard input is not UTF-8 text" }),
  })
})

const put = Command.make(
  "put",
  {
    project: Flag.String("project").pipe(
      Flag.withDescription("ID of the project that owns the secret"),
    ),
    name: Flag.String("name").pipe(Flag.withDescription("Name of the secret"), Flag.optional),
  },
  Effect.fn(function* ({ project, name }) {
    const configured = yield* embeddedSettings("openstack secret store")
    const request_body = {
      project_id: project,
      payload: yield* payload,
      ...(Option.isSome(name) && { name: name.value }),
    }
    const request = yield* Schema.decodeUnknownEffect(SecretRequest)(request_body)
    const running = yield* instance(configured)
    if (running !== undefined) {
      const response = yield* callInstance(
        running,
        configured,
        "POST",
        "/v1/admin/secrets",
        request_body,
      )
      const { href } = yield* Schema.decodeUnknownEffect(Put)(response)
      return yield* Console.log(href)
    }
    const { dir } = configured.data
    const href = yield* Effect.provide(
      Effect.flatMap(openVault(dir), (files) => secretKeeper(files).put(request)),
      DataFolder.layer(dir, "brief"),
    )
    yield* Console.log(href)
  }),
).pipe(
  Command.withDescription(
    "Store a secret from standard input, without the final newline, and print its href",
  ),
  Command.withExamples([
    {
      command: "almanac secret put --project 0193f5a0-7c1e-7d3a-9b54-2f6f0c1d8e77 < s3-key.txt",
      description: "Store an S3 key of a tenant",
    },
  ]),
)

export const secret = Command.make("secret").pipe(
  Command.withDescription(summaries.secret),
  Command.withExamples(put.examples),
  Command.withSubcommands([put]),
)
