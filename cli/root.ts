/** The `almanac` command: the flags of every command, and the settings that they select. */
import { Effect, Schema } from "effect"
import { Command, Flag } from "effect/cli"
import type { SettingsSources } from "#server/program.ts"

/** Maximum number of settings on one command line; more belong in a file. */
const set_flags_max = 200

export const root = Command.make("almanac").pipe(
  Command.withSharedFlags({
    config: Flag.String("config").pipe(
      Flag.withDescription("TOML file with settings (or ALMANAC_CONFIG)"),
      Flag.withDefault(""),
    ),
    set: Flag.String("set").pipe(
      Flag.withDescription("Setting, section.name=value (repeatable)"),
      Flag.between(0, set_flags_max),
    ),
  }),
  Command.withDescription("Five services on one replayable log. Settings: docs/configuration.md."),
)

/** Sources of settings that this command line names. */
export const sources = Effect.map(root, ({ config, set }): SettingsSources => ({ config, set }))

/** Settings from the command line, environment and file. InvalidSettings is one line. */
export const settings = Effect.gen(function* () {
  // Most commands run without settings, whose schemas take a tenth of a command's startup time.
  const { readSettings } = yield* Effect.promise(() => import("#adapters/settings.ts"))
  const { settings } = yield* readSettings({ ...(yield* sources), env: process.env })
  return settings
})

/** The data that the command would change is stored elsewhere; the message says where. */
class NotEmbedded extends Schema.TaggedError<NotEmbedded>()("NotEmbedded", {
  message: Schema.String,
}) {}

/** Settings for a command on the embedded stores. Fails with NotEmbedded if they are not in use. */
export const embeddedSettings = (instead: string) =>
  Effect.gen(function* () {
    const read = yield* settings
    if (read.identity.kind === "embedded") return read
    const message = `identity.kind is ${read.identity.kind}: use \`${instead}\` instead`
    return yield* new NotEmbedded({ message })
  })
