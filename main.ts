/** `almanac <command>`: the command line. */
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { Cause, Console, Effect, Exit, Layer, Runtime } from "effect"
import { Argument, CliError, Command } from "effect/cli"
import { logging } from "#adapters/logging.ts"
import { keepPrivate } from "#adapters/process-privacy.ts"
import { type CommandName, summaries } from "#cli/client/summaries.ts"
import { dashboard, operators, share_protection, subscribers } from "#cli/command-groups.ts"
import { presenter } from "#cli/help.ts"
import { root } from "#cli/root.ts"
import { causeText } from "#schemas/cause-text.ts"
import { version } from "#server/program.ts"

/** Commands are loaded on demand: loading all of them takes longer than running most of them. */
const store = {
  blobs: async () => (await import("#cli/blobs/blobs.ts")).blobs,
  cluster: async () => (await import("#cli/blobs/cluster.ts")).cluster,
}
const others = {
  ...dashboard,
  ingest: async () => (await import("#cli/dashboard/ingest.ts")).ingest,
  "backfill-composite": async () => (await import("#cli/dashboard/backfill-composite.ts")).backfill,
  carriers: async () => (await import("#cli/carriers/carriers.ts")).carriers,
  predict: async () => (await import("#cli/plant/predict.ts")).predict,
  plant: async () => (await import("#cli/plant/plant.ts")).plant,
}
const log = {
  events: async () => (await import("#cli/events.ts")).events,
  ...subscribers,
  audit: async () => (await import("#cli/audit/audit.ts")).audit,
  log: async () => (await import("#cli/log/log.ts")).log,
  rebuild: async () => (await import("#cli/log/rebuild.ts")).rebuild,
  migrate: async () => (await import("#cli/log/migrate.ts")).migrate,
}
const machine = {
  serve: async () => (await import("#cli/serve/serve.ts")).serve,
  agent: async () => (await import("#cli/serve/agent.ts")).agent,
  token: async () => (await import("#cli/access/token.ts")).token,
  trust: async () => (await import("#cli/access/trust.ts")).trust,
  secret: async () => (await import("#cli/access/secret.ts")).secret,
  catalog: async () => (await import("#cli/access/catalog.ts")).catalog,
  doctor: async () => (await import("#cli/doctor/doctor.ts")).doctor,
  "backup-state": async () => (await import("#cli/state/backup-state.ts")).backup,
  "restore-state": async () => (await import("#cli/state/restore-state.ts")).restore,
  demo: async () => (await import("#cli/demo/demo.ts")).demo,
  completion: async (): Promise<ReturnType<typeof completionOf>> => {
    const { completionOf } = await import("#cli/completion.ts")
    const allCommands = async (): Promise<Command.Command.Any> =>
      root.pipe(Command.withSubcommands(await commandGroups(() => true)))
    return completionOf(allCommands)
  },
  version: async () =>
    Command.make("version", {}, () => Console.log(`almanac ${version}`)).pipe(
      Command.withDescription(summaries.version),
      Command.withExamples([{ command: "almanac version", description: "The installed version" }]),
    ),
  // Rewritten by helpArguments; this entry is for the list of commands and for completion.
  help: async () =>
    Command.make("help", {
      command: Argument.String("command").pipe(
        Argument.withDescription("Command, such as jobs or jobs list"),
        Argument.variadic(),
      ),
    }).pipe(
      Command.withDescription(summaries.help),
      Command.withExamples([
        { command: "almanac help backups create", description: "Its flags and an example" },
      ]),
    ),
}
const loaders = { ...share_protection, ...operators, ...store, ...others, ...log, ...machine }

type Loaded = Awaited<ReturnType<(typeof loaders)[CommandName]>>

const isCommand = (word: string): word is CommandName => Object.hasOwn(loaders, word)

/**
 * A command without flags and subcommands, which is enough for its line in the help of `almanac`.
 */
const summary = (name: CommandName) =>
  Command.make(name).pipe(Command.withDescription(summaries[name]))

type IsNeeded = (name: string) => boolean

const commandsOf = <A>(group: Readonly<Record<string, () => Promise<A>>>, isNeeded: IsNeeded) =>
  Promise.all(
    Object.entries(group).map(async ([name, load]) =>
      isCommand(name) && !isNeeded(name) ? summary(name) : await load(),
    ),
  )

/** All commands in the order of the help. */
const commandGroups = async (isNeeded: IsNeeded) => [
  { group: "SHARE PROTECTION", commands: await commandsOf<Loaded>(share_protection, isNeeded) },
  { group: "BLOBS", commands: await commandsOf<Loaded>(store, isNeeded) },
  { group: "DASHBOARD, CARRIERS, PLANTS", commands: await commandsOf<Loaded>(others, isNeeded) },
  { group: "OPERATORS", commands: await commandsOf<Loaded>(operators, isNeeded) },
  { group: "LOG", commands: await commandsOf<Loaded>(log, isNeeded) },
  { group: "THIS MACHINE", commands: await commandsOf<Loaded>(machine, isNeeded) },
]

/** These flags show all commands, with their flags. */
const shows_all = /^--(completions|wizard)\b/

/**
 * The commands for these arguments: the first argument, if that is a command. Otherwise all of
 * them, and only those named in any argument are loaded in full.
 */
const loadCommands = async (words: ReadonlyArray<string>) => {
  const [first = ""] = words
  if (isCommand(first)) return [await loaders[first]()]
  const all = words.some((word) => shows_all.test(word))
  return await commandGroups((name) => all || words.includes(name))
}

const isHelpFlag = (word: string) => word === "--help" || word === "-h"

/**
 * Rewrites `help jobs list` to `jobs list --help`. The words after a command without subcommands
 * are dropped; an unknown command stays, so that it is reported.
 */
const helpArguments = (words: ReadonlyArray<string>, tree: Command.Command.Any) => {
  if (words[0] !== "help" || words.some(isHelpFlag)) return words
  const path: Array<string> = []
  let at = tree
  for (const word of words.slice(1).filter((word) => !word.startsWith("-"))) {
    const commands = at.subcommands.flatMap(({ commands }) => commands)
    if (commands.length === 0) break
    const found = commands.find(({ name, alias }) => name === word || alias === word)
    if (found === undefined) return [...path, word]
    path.push(word)
    at = found
  }
  return [...path, "--help"]
}

/** Runs the command line of this process. */
const main = Effect.gen(function* () {
  const words = process.argv.slice(2)
  const named = words[0] === "help" && !words.some(isHelpFlag) ? words.slice(1) : words
  const tree = root.pipe(Command.withSubcommands(yield* Effect.promise(() => loadCommands(named))))
  yield* Command.runWith(tree, { version })(helpArguments(words, tree))
})

const explain = (cause: Cause.Cause<unknown>) => {
  if (Cause.hasInterruptsOnly(cause)) return Effect.void
  const failed = cause.reasons.find(Cause.isFailReason)
  // A defect is a bug, so log its stack.
  if (failed === undefined) return Effect.logFatal("almanac failed", cause)
  // The presenter printed the error.
  if (CliError.isCliError(failed.error)) return Effect.void
  return Effect.sync(() =>
    process.stderr.write(`almanac: ${causeText(failed.error) || failed.error}\n`),
  )
}

/** Exit code for a wrong command line. Commands with their own meaning of 2 exit with 1 instead. */
const usage_code = 2
const own_codes = new Set(["ingest", "agent", "serve"])

const isUsage = ({ reasons }: Cause.Cause<unknown>) =>
  reasons.some((reason) => Cause.isFailReason(reason) && CliError.isCliError(reason.error))

/** A requested shutdown is not a failure, unless the command has set another exit code. */
const teardown: Runtime.Teardown = (exit, onExit) => {
  if (Exit.isSuccess(exit)) return Runtime.defaultTeardown(exit, onExit)
  if (Cause.hasInterruptsOnly(exit.cause)) return onExit(Number(process.exitCode ?? 0))
  const is_usage = isUsage(exit.cause) && !own_codes.has(process.argv[2] ?? "")
  return is_usage ? onExit(usage_code) : Runtime.defaultTeardown(exit, onExit)
}

keepPrivate()

// No top-level await, which the bundle's format does not support (decision 0070).
main.pipe(
  Effect.tapCause(explain),
  // Standard output is reserved for the command's output.
  Effect.provide(
    Layer.mergeAll(
      NodeServices.layer,
      presenter,
      logging(() => "warning"),
    ),
  ),
  NodeRuntime.runMain({ disableErrorReporting: true, teardown }),
)
