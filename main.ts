/** `almanac <verb>`: the command line. */
import { NodeRuntime, NodeServices } from "@effect/platform-node"
import { Effect } from "effect"
import { Command } from "effect/cli"
import { root } from "#verbs/root.ts"
import { serve } from "#verbs/serve.ts"
import { token } from "#verbs/token.ts"

root.pipe(
  Command.withSubcommands([serve, token]),
  Command.run({ version: "0.1.0" }),
  Effect.provide(NodeServices.layer),
  NodeRuntime.runMain,
)
