/** `almanac <verb>`: the command line. */
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { Cause, Effect, Exit, Layer, Predicate, Runtime } from "effect"
import { CliError, Command } from "effect/cli"
import { logging } from "#adapters/logging.ts"
import { root, version } from "#verbs/root.ts"

/** Each is loaded where it is asked for: all of them take longer than most of them run. */
const verbs = {
  serve: async () => (await import("#verbs/serve.ts")).serve,
  agent: async () => (await import("#verbs/agent.ts")).agent,
  ingest: async () => (await import("#verbs/ingest.ts")).ingest,
  "backfill-composite": async () => (await import("#verbs/backfill-composite.ts")).backfill,
  carriers: async () => (await import("#verbs/carriers.ts")).carriers,
  blobs: async () => (await import("#verbs/blobs.ts")).blobs,
  cluster: async () => (await import("#verbs/cluster.ts")).cluster,
  audit: async () => (await import("#verbs/audit.ts")).audit,
  catalog: async () => (await import("#verbs/catalog.ts")).catalog,
  rebuild: async () => (await import("#verbs/rebuild.ts")).rebuild,
  migrate: async () => (await import("#verbs/migrate.ts")).migrate,
  token: async () => (await import("#verbs/token.ts")).token,
  trust: async () => (await import("#verbs/trust.ts")).trust,
  secret: async () => (await import("#verbs/secret.ts")).secret,
  demo: async () => (await import("#verbs/demo.ts")).demo,
  plant: async () => (await import("#verbs/plant.ts")).plant,
}

const isVerb = (word = ""): word is keyof typeof verbs => Object.hasOwn(verbs, word)

/** The verb that comes first on the command line; all of them where something else does. */
const asked = () => {
  const first = process.argv[2]
  return isVerb(first) ? [verbs[first]()] : Object.values(verbs).map((load) => load())
}

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

/** Told to stop, it stops in order: that is no failure, but for a verb that says so. */
const teardown: Runtime.Teardown = (exit, onExit) => {
  const interrupted = Exit.isFailure(exit) && Cause.hasInterruptsOnly(exit.cause)
  return interrupted ? onExit(Number(process.exitCode ?? 0)) : Runtime.defaultTeardown(exit, onExit)
}

// No await at the top: the form of the bundle that verbs run has none (decision 0070).
Effect.promise(() => Promise.all(asked())).pipe(
  Effect.flatMap((loaded) => root.pipe(Command.withSubcommands(loaded), Command.run({ version }))),
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
