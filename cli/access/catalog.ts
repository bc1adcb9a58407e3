/** `almanac catalog register`: registers the endpoint in Keystone's service catalogue. */

import { Console, Effect, Schema } from "effect"
import { Command, Flag } from "effect/cli"
import { register } from "#adapters/keystone/catalog.ts"
import { keystoneSession } from "#adapters/keystone/session.ts"
import { summaries } from "#cli/client/summaries.ts"
import { settings } from "#cli/root.ts"

/** The endpoint was not registered; the message is one line that says why. */
export class NotRegistered extends Schema.TaggedError<NotRegistered>()("NotRegistered", {
  message: Schema.String,
}) {}

const isAddress = (url: string) => {
  if (!URL.canParse(url)) return false
  const { protocol, username, password, search, hash } = new URL(url)
  return /^https?:$/.test(protocol) && `${username}${password}${search}${hash}` === ""
}

const registering = Command.make(
  "register",
  {
    url: Flag.String("url").pipe(
      Flag.withDescription(
        "URL of this service for clients, such as https://backup.example.org/v1",
      ),
    ),
  },
  Effect.fn(function* ({ url }) {
    const configured = yield* settings
    const { DEFAULT, identity, keystone_authtoken } = configured
    if (identity.kind !== "keystone") {
      const message = "identity.kind is embedded, which has no service catalog"
      return yield* new NotRegistered({ message })
    }
    if (!isAddress(url)) {
      return yield* new NotRegistered({
        message: "--url must be an http:// or https:// URL without user name, query or fragment",
      })
    }
    const entry = {
      type: DEFAULT.catalog_type,
      interface_name: DEFAULT.endpoint_type.replace("URL", ""),
      region: keystone_authtoken.region,
      url: url.replace(/\/+$/, ""),
    }
    const done = yield* Effect.mapError(
      Effect.provide(register(entry), keystoneSession(configured)),
      (error) => new NotRegistered({ message: "detail" in error ? error.detail : error.message }),
    )
    yield* Console.log(`${entry.type} ${entry.interface_name} ${entry.url} ${done}`)
  }),
).pipe(
  Command.withDescription("Register or update the endpoint in the catalog of Keystone"),
  Command.withExamples([
    {
      command: "almanac catalog register --url https://backup.example.org/v1",
      description: "Idempotent",
    },
  ]),
)

export const catalog = Command.make("catalog").pipe(
  Command.withDescription(summaries.catalog),
  Command.withExamples(registering.examples),
  Command.withSubcommands([registering]),
)
