/** `almanac` itself: the flags that every verb takes, and the settings that they lead to. */
import { Effect } from "effect"
import { Command, Flag } from "effect/cli"
import { readSettings } from "#adapters/settings.ts"
import manifest from "#package.json" with { type: "json" }

/** This program's version, as package.json has it. */
export const { version } = manifest

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

/** The settings of this command line, its environment and its file. InvalidSettings: one line. */
export const settings = Effect.gen(function* () {
  const { config, set } = yield* root
  const { settings } = yield* readSettings({ config, set, env: process.env })
  return settings
})
