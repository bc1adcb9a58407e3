/** `almanac token`: tokens for all processes of a deployment. */

import { Clock, Console, DateTime, Effect, Layer, Option, Redacted, Schedule, Schema } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import { v7 } from "uuid"
import { host } from "#actors/host.ts"
import { logIssuer } from "#adapters/system/issued-tokens.ts"
import { summaries } from "#cli/client/summaries.ts"
import { settings } from "#cli/root.ts"
import type { Origin } from "#events/log.ts"
import type { Settings } from "#schemas/settings.ts"
import { TokenName, TokenRequest } from "#schemas/token.ts"
import { attachedLog } from "#server/session.ts"

/** Maximum number of roles or scopes of one token. */
const grants_max = 32

/** The requested token would grant nothing, or no token has the name. */
class TokenRefused extends Schema.TaggedError<TokenRefused>()("TokenRefused", {
  message: Schema.String,
}) {}

/** Origin of one run of this command, shared by its retries. */
const originNow = Effect.map(
  Clock.currentTimeMillis,
  (now): Origin => ({
    command_id: v7(),
    fingerprint: "verb",
    actor: "process:token",
    at: DateTime.formatIso(DateTime.makeUnsafe(now)),
  }),
)

type Issuer = Effect.Success<typeof logIssuer>

/** Retries the same command if it is unknown whether the log accepted it. */
const tries = { times: 2, schedule: Schedule.spaced("1 second") }

/** Works through the log, which all running processes follow. */
const overLog = <A, E>(
  configured: Settings,
  use: (issuer: Issuer, origin: Origin) => Effect.Effect<A, E>,
) =>
  Effect.gen(function* () {
    const issuer = yield* logIssuer
    return yield* Effect.retry(use(issuer, yield* originNow), tries)
  }).pipe(Effect.provide(Layer.provideMerge(host, attachedLog(configured))))

const issue = Command.make(
  "issue",
  {
    project: Flag.String("project").pipe(
      Flag.withDescription("ID of the project that the token belongs to"),
      Flag.optional,
    ),
    role: Flag.String("role").pipe(
      Flag.withDescription("Role in the project, such as member (repeatable)"),
      Flag.between(0, grants_max),
    ),
    scope: Flag.String("scope").pipe(
      Flag.withDescription("Scope, such as blobs:read (repeatable)"),
      Flag.between(0, grants_max),
    ),
    name: Flag.String("name").pipe(
      Flag.withDescription("Name of the bearer, which the log records and `token revoke` accepts"),
      Flag.optional,
    ),
    ttl: Flag.Int("ttl").pipe(
      Flag.withDescription("Seconds until it expires (default: never)"),
      Flag.optional,
    ),
  },
  Effect.fn(function* ({ project, role, scope, name, ttl }) {
    if (role.length + scope.length === 0 && Option.isNone(project)) {
      return yield* new TokenRefused({
        message: "The token would grant nothing: add --role, --scope or --project.",
      })
    }
    const configured = yield* settings
    const request = yield* Schema.decodeUnknownEffect(TokenRequest)({
      roles: role,
      scopes: scope,
      ...(Option.isSome(project) && { project_id: project.value }),
      ...(Option.isSome(name) && { name: name.value }),
      ...(Option.isSome(ttl) && { ttl_seconds: ttl.value }),
    })
    const token = yield* overLog(configured, ({ issue }, origin) => issue(request, origin))
    yield* Console.log(Redacted.value(token))
  }),
).pipe(
  Command.withDescription("Issue a token and print it"),
  Command.withExamples([
    {
      command: "almanac token issue --project 0193f5a0-7c1e-7d3a-9b54-2f6f0c1d8e77 --role member",
      description: "Token for a tenant",
    },
    {
      command: "almanac token issue --name backup --scope blobs:read --scope blobs:write",
      description: "Token for the blob service",
    },
  ]),
)

const revoke = Command.make(
  "revoke",
  { name: Argument.String("name").pipe(Argument.withDescription("Name of the tokens")) },
  Effect.fn(function* ({ name }) {
    const configured = yield* settings
    const named = yield* Schema.decodeUnknownEffect(TokenName)(name)
    const { count } = yield* overLog(configured, (issuer, origin) => issuer.revoke(named, origin))
    if (count === 0) return yield* new TokenRefused({ message: `No token is named ${named}.` })
  }),
).pipe(
  Command.withDescription("Revoke all tokens of a name; every process rejects them from now on"),
  Command.withExamples([{ command: "almanac token revoke backup", description: "Prints nothing" }]),
)

export const token = Command.make("token").pipe(
  Command.withDescription(summaries.token),
  Command.withExamples(issue.examples),
  Command.withSubcommands([issue, revoke]),
)
