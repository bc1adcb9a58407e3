/** The commands that compare read models with the log, as run from a command line. */
import * as NodeServices from "@effect/platform-node/NodeServices"
import { Effect } from "effect"
import { Command } from "effect/cli"
import { audit } from "#cli/audit/audit.ts"
import { rebuild } from "#cli/log/rebuild.ts"
import { root } from "#cli/root.ts"
import { printed } from "./printed.ts"

export const almanac = (...args: ReadonlyArray<string>) =>
  printed(
    Effect.result(
      Command.runWith(Command.withSubcommands(root, [audit, rebuild]), { version: "test" })(args),
    ),
  ).pipe(Effect.provide(NodeServices.layer))
