/** `almanac trust`: delegations from tenants to the service, with the embedded identity. */

import { Console, Effect, Option, Schema } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import { DataFolder } from "#adapters/data-folder/lock.ts"
import { openTrustStore } from "#adapters/share-protection/trust-store.ts"
import { trustIssuer } from "#adapters/share-protection/trusts-embedded.ts"
import { summaries } from "#cli/client/summaries.ts"
import { callInstance, instance, isNotFound } from "#cli/instance.ts"
import { embeddedSettings } from "#cli/root.ts"
import { no_trust } from "#gateway/system/credentials.ts"
import type { Settings } from "#schemas/settings.ts"
import { TrustId, TrustRequest } from "#schemas/trust.ts"

/** Maximum number of roles of one trust. */
const roles_max = 32

const Created = Schema.fromJsonString(Schema.Struct({ trust_id: Schema.String }))

/** The trust does not exist or was already revoked. */
class NoSuchTrust extends Schema.TaggedError<NoSuchTrust>()("NoSuchTrust", {
  message: Schema.String,
}) {}

const noTrust = (trust_id: string) =>
  new NoSuchTrust({ message: `Trust ${trust_id} does not exist.` })

/** The issuer on this data folder, with exclusive access. */
const issuerOf = ({ data, cluster }: Settings) =>
  Effect.map(openTrustStore(data.dir, cluster.secret), trustIssuer)

const create = Command.make(
  "create",
  {
    project: Flag.String("project").pipe(
      Flag.withDescription("ID of the project in which the trust is valid"),
    ),
    user: Flag.String("user").pipe(
      Flag.withDescription("Trustor; without it, every user of the project may use the trust"),
      Flag.optional,
    ),
    role: Flag.String("role").pipe(
      Flag.withDescription("Delegated role (repeatable, default: member)"),
      Flag.between(0, roles_max),
    ),
    ttl: Flag.Int("ttl").pipe(
      Flag.withDescription("Seconds until it expires (default: never)"),
      Flag.optional,
    ),
  },
  Effect.fn(function* ({ project, user, role, ttl }) {
    const configured = yield* embeddedSettings("openstack trust create")
    const request = yield* Schema.decodeUnknownEffect(TrustRequest)({
      project_id: project,
      roles: role.length === 0 ? ["member"] : role,
      ...(Option.isSome(user) && { user_id: user.value }),
      ...(Option.isSome(ttl) && { ttl_seconds: ttl.value }),
    })
    const running = yield* instance(configured)
    if (running !== undefined) {
      const response = yield* callInstance(running, configured, "POST", "/v1/admin/trusts", request)
      const { trust_id } = yield* Schema.decodeUnknownEffect(Created)(response)
      return yield* Console.log(trust_id)
    }
    const trust_id = yield* Effect.provide(
      Effect.flatMap(issuerOf(configured), ({ issue }) => issue(request)),
      DataFolder.layer(configured.data.dir, "brief"),
    )
    yield* Console.log(trust_id)
  }),
).pipe(
  Command.withDescription("Create a trust and print its ID"),
  Command.withExamples([
    {
      command: "almanac trust create --project 0193f5a0-7c1e-7d3a-9b54-2f6f0c1d8e77",
      description: "Trust of a tenant",
    },
  ]),
)

const revoke = Command.make(
  "revoke",
  { trust: Argument.String("trust").pipe(Argument.withDescription("ID of the trust")) },
  Effect.fn(function* ({ trust }) {
    const configured = yield* embeddedSettings("openstack trust delete")
    const trust_id = yield* Schema.decodeUnknownEffect(TrustId)(trust)
    const running = yield* instance(configured)
    if (running !== undefined) {
      const path = `/v1/admin/trusts/${trust_id}/revoke`
      yield* Effect.catchIf(
        callInstance(running, configured, "POST", path),
        (cause) => isNotFound(cause) && cause.message === no_trust,
        () => noTrust(trust_id),
      )
      return
    }
    const was_there = yield* Effect.provide(
      Effect.flatMap(issuerOf(configured), ({ revoke }) => revoke(trust_id)),
      DataFolder.layer(configured.data.dir, "brief"),
    )
    if (!was_there) return yield* noTrust(trust_id)
  }),
).pipe(
  Command.withDescription("Revoke a trust; jobs that need it fail"),
  Command.withExamples([
    {
      command: "almanac trust revoke 0193f5a0-7c1e-7d3a-9b54-2f6f0c1d8e78",
      description: "Prints nothing",
    },
  ]),
)

export const trust = Command.make("trust").pipe(
  Command.withDescription(summaries.trust),
  Command.withExamples(create.examples),
  Command.withSubcommands([create, revoke]),
)
