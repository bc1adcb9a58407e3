/** `almanac token issue`: a token of the embedded identity. */
import { Console, Effect, Option, Redacted, Schema } from "effect"
import { Command, Flag } from "effect/cli"
import { DataFolder } from "#adapters/data-lock.ts"
import { tokenIssuer } from "#adapters/identity.ts"
import { openTokenStore } from "#adapters/token-store.ts"
import type { Settings } from "#schemas/settings.ts"
import { TokenRequest } from "#schemas/token.ts"
import { ask, instance } from "#verbs/instance.ts"
import { settings } from "#verbs/root.ts"

/** Roles or scopes of one token. */
const grants_max = 32

const Issued = Schema.fromJsonString(Schema.Struct({ token: Schema.String }))

/** Where several processes share a bus, each knows the tokens of its own data folder alone. */
const noteOfOthers = ({ nats, data }: Settings) =>
  nats.url === ""
    ? Effect.void
    : Console.error(
        `It is known to the process of ${data.dir} alone: for all of a deployment, put a token ` +
          "into auth.tokens of each, or use JWT.",
      )

const issue = Command.make(
  "issue",
  {
    project: Flag.String("project").pipe(
      Flag.withDescription("Project that the token belongs to"),
      Flag.optional,
    ),
    role: Flag.String("role").pipe(
      Flag.withDescription("Role in it, member for example; may be repeated"),
      Flag.between(0, grants_max),
    ),
    scope: Flag.String("scope").pipe(
      Flag.withDescription("Scope, blobs:read for example; may be repeated"),
      Flag.between(0, grants_max),
    ),
    name: Flag.String("name").pipe(
      Flag.withDescription("Name by which the log knows its bearer"),
      Flag.optional,
    ),
    ttl: Flag.Int("ttl").pipe(
      Flag.withDescription("Seconds until it expires; without it, it does not"),
      Flag.optional,
    ),
  },
  Effect.fn(function* ({ project, role, scope, name, ttl }) {
    const configured = yield* settings
    const request = yield* Schema.decodeUnknownEffect(TokenRequest)({
      roles: role,
      scopes: scope,
      ...(Option.isSome(project) && { project_id: project.value }),
      ...(Option.isSome(name) && { name: name.value }),
      ...(Option.isSome(ttl) && { ttl_seconds: ttl.value }),
    })
    const running = yield* instance(configured)
    if (running !== undefined) {
      const answer = yield* ask(running, configured, "POST", "/v1/admin/tokens", request)
      const { token } = yield* Schema.decodeUnknownEffect(Issued)(answer)
      yield* Console.log(token)
      return yield* noteOfOthers(configured)
    }
    const token = yield* Effect.provide(
      Effect.flatMap(openTokenStore(configured.data.dir), (store) =>
        tokenIssuer(store).issue(request),
      ),
      DataFolder.layer(configured.data.dir),
    )
    yield* Console.log(Redacted.value(token))
    yield* noteOfOthers(configured)
  }),
).pipe(
  Command.withDescription("Print one line: a new token"),
  Command.withExamples([
    {
      command: "almanac token issue --project 0193f5a0-7c1e-7d3a-9b54-2f6f0c1d8e77 --role member",
      description: "A token for a tenant",
    },
    {
      command: "almanac token issue --name backup --scope blobs:read --scope blobs:write",
      description: "A token for the blob service",
    },
  ]),
)

export const token = Command.make("token").pipe(
  Command.withDescription("Tokens of the embedded identity"),
  Command.withSubcommands([issue]),
)
