/** `almanac <verb>`: the command line. */
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { Cause, Effect, Exit, Layer, Predicate, Runtime } from "effect"
import { CliError, Command } from "effect/cli"
import { logging } from "#adapters/logging.ts"
import { agent } from "#verbs/agent.ts"
import { audit } from "#verbs/audit.ts"
import { catalog } from "#verbs/catalog.ts"
import { demo } from "#verbs/demo.ts"
import { migrate } from "#verbs/migrate.ts"
import { rebuild } from "#verbs/rebuild.ts"
import { root, version } from "#verbs/root.ts"
import { secret } from "#verbs/secret.ts"
import { serve } from "#verbs/serve.ts"
import { token } from "#verbs/token.ts"
import { trust } from "#verbs/trust.ts"

/** What went wrong in one line, for whoever typed the command. */
const messageOf = (error: unknown) =>
  Predicate.hasProperty(error, "message") ? String(error.message) : String(error)

const explain = (cause: Cause.Cause<unknown>) => {
  if (Cause.hasInterruptsOnly(cause)) return Effect.void
  const failed = cause.reasons.find(Cause.isFailReason)
  // A defect is ours, and needs its stack.
  if (failed === undefined) return Effect.logFatal("almanac failed", cause)
  // The help that was shown has said it.
  if (CliError.isCliError(failed.error)) return Effect.void
  return Effect.sync(() => process.stderr.write(`almanac: ${messageOf(failed.error)}\n`))
}

/** Told to stop, it stops in order: that is no failure. */
const teardown: Runtime.Teardown = (exit, onExit) => {
  const interrupted = Exit.isFailure(exit) && Cause.hasInterruptsOnly(exit.cause)
  return interrupted ? onExit(0) : Runtime.defaultTeardown(exit, onExit)
}

root.pipe(
  Command.withSubcommands([
    serve,
    agent,
    audit,
    catalog,
    rebuild,
    migrate,
    token,
    trust,
    secret,
    demo,
  ]),
  Command.run({ version }),
  Effect.tapCause(explain),
  // A verb's standard output is its answer.
  Effect.provide(
    Layer.merge(
      NodeServices.layer,
      logging(() => "warning"),
    ),
  ),
  NodeRuntime.runMain({ disableErrorReporting: true, teardown }),
)
