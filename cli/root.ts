/** `almanac` itself: the flags that every verb takes, and the settings that they lead to. */
import { Effect, Schema } from "effect"
import { Command, Flag } from "effect/cli"
import type { SettingsSources } from "#server/program.ts"

/** Settings on one command line; more belong into a file. */
const set_flags_max = 200

export const root = Command.make("almanac").pipe(
  Command.withSharedFlags({
    config: Flag.String("config").pipe(
      Flag.withDescription("TOML file with settings (or ALMANAC_CONFIG)"),
      Flag.withDefault(""),
    ),
    set: Flag.String("set").pipe(
      Flag.withDescription("One setting, section.name=value; may be repeated"),
      Flag.between(0, set_flags_max),
    ),
  }),
  Command.withDescription("Five services on one replayable log. See docs/configuration.md."),
)

/** What this command line says of it. */
export const sources = Effect.map(root, ({ config, set }): SettingsSources => ({ config, set }))

/** The settings of this command line, its environment and its file. InvalidSettings: one line. */
export const settings = Effect.gen(function* () {
  // Most commands run without settings, and their schemas are a tenth of a command's start.
  const { readSettings } = yield* Effect.promise(() => import("#adapters/settings.ts"))
  const { settings } = yield* readSettings({ ...(yield* sources), env: process.env })
  return settings
})

/** What the verb would change is kept elsewhere; the message says where. */
class NotEmbedded extends Schema.TaggedError<NotEmbedded>()("NotEmbedded", {
  message: Schema.String,
}) {}

/** The settings of a verb that works on the embedded stores: refused where those are not in use. */
export const embeddedSettings = (instead: string) =>
  Effect.gen(function* () {
    const read = yield* settings
    if (read.identity.kind === "embedded") return read
    const message = `identity.kind is ${read.identity.kind}: use \`${instead}\` instead`
    return yield* new NotEmbedded({ message })
  })
