/**
 * Builds the commands that call a server over HTTP from the operations that `cli/client/` describes
 * (decision 0130). These commands load no server code.
 */
import { addAbortSignal } from "node:stream"
import { Effect, Option } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import { accessOf } from "#cli/client/access.ts"
import { exit_codes } from "#cli/client/exit-code.ts"
import { type ClientFailed, failure, isFailure } from "#cli/client/failure.ts"
import { httpOf } from "#cli/client/http.ts"
import { fromJson, type Json } from "#cli/client/json.ts"
import {
  argumentsOf,
  type CommandGroup,
  type Field,
  flagOf,
  type Operation,
} from "#cli/client/operation.ts"
import { findText } from "#cli/client/private-file.ts"
import { readAll } from "#cli/client/read-all.ts"
import { type FlagValue, pairsOf, requireFlags } from "#cli/client/request.ts"
import { runOperation } from "#cli/client/run.ts"
import { screen } from "#cli/client/screen.ts"
import type { Session } from "#cli/client/session.ts"
import { summaries } from "#cli/client/summaries.ts"
import { sources } from "#cli/root.ts"

/** Maximum number of repetitions of a flag. */
const repeated_max = 1_000

/** Items that a list shows without `--limit`. */
const limit_default = 1_000

/** Flags of every command over HTTP. */
export const shared = {
  json: Flag.Boolean("json").pipe(
    Flag.withDescription("Print JSON: one document, or one object per line for a stream"),
    Flag.withDefault(false),
  ),
  fields: Flag.String("fields").pipe(
    Flag.withAlias("o"),
    Flag.withDescription("Columns to print, separated by commas: id,status"),
    Flag.withDefault(""),
  ),
  quiet: Flag.Boolean("quiet").pipe(
    Flag.withAlias("q"),
    Flag.withDescription("Print only ids, one per line"),
    Flag.withDefault(false),
  ),
  profile: Flag.String("profile").pipe(
    Flag.withDescription("Profile in profiles.toml (or ALMANAC_PROFILE)"),
    Flag.withDefault(""),
  ),
  as: Flag.String("as").pipe(
    Flag.withDescription("Principal of a development server, such as tenant_b"),
    Flag.withDefault(""),
  ),
}

export interface Shared {
  readonly json: boolean
  readonly fields: string
  readonly quiet: boolean
  readonly profile: string
  readonly as: string
}

export const limit = Flag.Int("limit").pipe(
  Flag.withDescription("Maximum number of rows; 0 for all (default: 1000)"),
  Flag.filter(
    (count) => count >= 0,
    () => "0 or a positive number",
  ),
  Flag.withDefault(limit_default),
)

export const wait = Flag.Boolean("wait").pipe(
  Flag.withAlias("w"),
  Flag.withDescription("Wait for the job and show its progress"),
  Flag.withDefault(false),
)

/** `name=value`, repeated. */
export const pairs = (name: string, what: string) =>
  Flag.String(name).pipe(
    Flag.withMetavar("name=value"),
    Flag.withDescription(`${what} (repeatable)`),
    Flag.between(0, repeated_max),
    Flag.mapTryCatch(
      (texts) => pairsOf(texts, name),
      () => "name=value",
    ),
  )

/** Data folder and certificate of a server on this machine. */
const localServer = Effect.gen(function* () {
  const { config, set } = yield* sources
  const { env } = process
  if (config === "" && set.length === 0 && !env.ALMANAC_CONFIG) {
    return { data_dir: env.ALMANAC_DATA_DIR || "./data", tls_cert: env.ALMANAC_TLS__CERT }
  }
  const { readSettings } = yield* Effect.promise(() => import("#adapters/settings.ts"))
  const { settings } = yield* readSettings({ config, set, env })
  return { data_dir: settings.data.dir, tls_cert: settings.tls.cert }
})

const sessionOf = async (
  { json, fields, quiet, profile, as }: Shared,
  { data_dir, tls_cert }: { readonly data_dir: string; readonly tls_cert: string | undefined },
  signal: AbortSignal,
): Promise<Session> => {
  const access = await accessOf({
    env: process.env,
    data_dir,
    tls_cert,
    signal,
    profile: profile || undefined,
    as: as || undefined,
  })
  const names = fields.split(",").flatMap((name) => name.trim() || [])
  return {
    http: httpOf(access),
    screen: screen(),
    signal,
    output: { json, quiet, fields: names.length === 0 ? undefined : names },
  }
}

/** The reader closed our output, as `head` does: exit silently. */
const exitOnClosedOutput = (cause: NodeJS.ErrnoException) => {
  if (cause.code === "EPIPE") process.exit()
  process.stderr.write(`almanac: standard output: ${cause.message}\n`)
  process.exit(exit_codes.usage[0])
}

/**
 * Runs `work` with a session on the server that flags, environment and files name. On interruption
 * it aborts the work, waits for it to end, so that nothing is left half done, and reports its
 * error.
 */
export const withSession = (
  given: Shared,
  work: (session: Session) => Promise<unknown>,
  interrupted: number = exit_codes.interrupted[0],
) =>
  Effect.gen(function* () {
    const where = yield* localServer
    const stopping = new AbortController()
    process.stdout.on("error", exitOnClosedOutput)
    const working = async () => {
      const session = await sessionOf(given, where, stopping.signal)
      try {
        await work(session)
      } finally {
        session.http.close()
      }
    }
    const running = working()
    const stop = Effect.promise(async () => {
      process.exitCode = interrupted
      stopping.abort()
      await running.catch((cause: unknown) => {
        if (isFailure(cause)) process.stderr.write(`almanac: ${cause.message}\n`)
      })
    })
    yield* Effect.tryPromise({ try: () => running, catch: (cause) => cause }).pipe(
      Effect.catch((cause) => (isFailure(cause) ? Effect.fail(cause) : Effect.die(cause))),
      Effect.onInterrupt(() => stop),
    )
  })

/** Failures after which the remaining items would fail too. */
const is_last = new Set(["unreachable", "interrupted"])

const namedFailure = (name: string, cause: ClientFailed) =>
  cause.message.includes(name) || cause.ending === "interrupted"
    ? cause
    : failure(cause.ending, `${name}: ${cause.message}`, undefined, cause.retry_after_ms)

/**
 * Runs `work` on each file or id in turn, even after one fails. Shows the results and prints each
 * failure; fails at the end with the exit code of the first failure.
 */
export const runEach = async (
  { screen }: Session,
  all: ReadonlyArray<string>,
  work: (one: string) => Promise<Json>,
  show: (done: ReadonlyArray<Json>) => void,
) => {
  const done: Array<Json> = []
  const failures: Array<ClientFailed> = []
  try {
    for (const one of all) {
      try {
        done.push(await work(one))
      } catch (cause) {
        if (!isFailure(cause)) throw cause
        const failed = namedFailure(one, cause)
        failures.push(failed)
        if (all.length > 1) screen.err(`almanac: ${failed.message}\n`)
        if (is_last.has(cause.ending)) break
      }
    }
  } finally {
    if (done.length > 0) show(done)
  }
  const [first] = failures
  if (first === undefined) return
  if (all.length === 1) throw first
  const left = all.length - done.length - failures.length
  const rest = left === 0 ? "" : `, ${left} not tried`
  throw failure(first.ending, `${failures.length} of ${all.length} failed${rest}`)
}

/** Maximum size of standard input in bytes, the same as for a file. */
const body_bytes_max = 2 ** 20

const standardInput = async (signal: AbortSignal) => {
  const tooLong = (reason: string) => failure("usage", `standard input is ${reason}`)
  const reading = readAll(addAbortSignal(signal, process.stdin), body_bytes_max, tooLong)
  const bytes = await reading.catch((cause: unknown) => {
    throw signal.aborted ? failure("interrupted", "Interrupted.") : cause
  })
  return bytes.toString()
}

/** Reads `--body`: JSON from a file, or from standard input for `-`. */
const readBody = async (path: string, signal: AbortSignal): Promise<Json | undefined> => {
  if (path === "") return undefined
  const text = path === "-" ? await standardInput(signal) : (await findText(path))?.text
  if (text === undefined) throw failure("usage", `${path} does not exist`)
  try {
    return fromJson(text)
  } catch {
    throw failure("usage", `--body: ${path === "-" ? "standard input" : path} is not valid JSON`)
  }
}

const flag = (field: Field): Flag.Flag<Option.Option<FlagValue>> => {
  const name = flagOf(field)
  const described = <A>(one: Flag.Flag<A>, more = "") =>
    one.pipe(Flag.withDescription(field.what + more))
  const some = <A extends FlagValue>(one: A) => Option.some<FlagValue>(one)
  switch (field.kind) {
    case "text": {
      const { choices } = field
      const one = choices === undefined ? Flag.String(name) : Flag.Literals(name, choices)
      return described(one).pipe(Flag.optional)
    }
    case "integer":
      return described(Flag.Int(name)).pipe(Flag.optional)
    case "boolean":
      return described(Flag.Boolean(name), ` (--no-${name} turns it off)`).pipe(Flag.optional)
    case "list":
      return described(Flag.String(name)).pipe(
        Flag.between(0, repeated_max),
        Flag.map((texts) => (texts.length === 0 ? Option.none<FlagValue>() : some(texts))),
      )
    case "map":
      return pairs(name, field.what).pipe(
        Flag.map((found) =>
          Object.keys(found).length === 0 ? Option.none<FlagValue>() : some(found),
        ),
      )
  }
}

const recordOf = <A>(names: ReadonlyArray<string>, make: (name: string) => A) =>
  Object.fromEntries(names.map((name) => [name, make(name)]))

const body = Flag.String("body").pipe(
  Flag.withMetavar("file"),
  Flag.withDescription("File with the JSON body, - for standard input; flags override its members"),
  Flag.withDefault(""),
)

const operators = ({ for_operators }: Operation) =>
  Flag.Boolean(for_operators?.flag ?? "admin").pipe(
    Flag.withDescription(
      for_operators?.flag === "admin"
        ? "Act as an operator, on a job of any project"
        : "List all projects; requires an operator",
    ),
    Flag.withDefault(false),
  )

const fieldsOf = ({ query = [], body: fields = [], for_operators }: Operation) => [
  ...query,
  ...(for_operators?.query ?? []),
  ...fields,
]

/** Runs a check that may throw ClientFailed. */
const attempt = (check: () => void) =>
  Effect.try({ try: check, catch: (cause) => cause }).pipe(
    Effect.catch((cause) => (isFailure(cause) ? Effect.fail(cause) : Effect.die(cause))),
  )

const withoutOptions = (found: Readonly<Record<string, Option.Option<FlagValue>>>) =>
  Object.fromEntries(
    Object.entries(found).flatMap(([name, value]) =>
      Option.isSome(value) ? [[name, value.value]] : [],
    ),
  )

/** Groups whose resources may be named instead of their id (`share-protection/name.ts`). */
const is_named = new Set(["targets", "policies", "templates"])

/** Arguments of paths whose meaning does not follow from the command group. */
const argument_texts: Readonly<Record<string, string>> = {
  domain_id: "ID of the domain",
  metric_id: "ID of the metric",
  tier: "Tier, 1 to 4",
  name: "Name of the read model",
  sequence: "Sequence number of the dead letter",
  service: "Service of the aggregate",
  aggregate: "Kind of the aggregate",
}

const argumentText = (group: string, name: string) => {
  const known = argument_texts[name]
  if (known !== undefined) return known
  const noun = group === "audit" ? "aggregate" : group.replace(/ies$/, "y").replace(/s$/, "")
  return `${is_named.has(group) ? "ID or name" : "ID"} of the ${noun}`
}

const example = (group: string, operation: Operation) =>
  operation.example ??
  [
    "almanac",
    group,
    operation.command,
    ...argumentsOf(operation.path).map((one) => one.toUpperCase()),
  ].join(" ")

/** The command of one operation. */
const operationCommand = (group: string, operation: Operation) => {
  const { command: name, alias, path, what, items, is_paged, has_job, for_operators } = operation
  const has_body = operation.body !== undefined
  const command = Command.make(
    name,
    {
      at: recordOf(argumentsOf(path), (name) =>
        Argument.String(name.replaceAll("_", "-")).pipe(
          Argument.withDescription(argumentText(group, name)),
        ),
      ),
      typed: Object.fromEntries(fieldsOf(operation).map((field) => [field.name, flag(field)])),
      limited: is_paged === true && items !== undefined ? { limit } : {},
      waited: has_job === true ? { wait } : {},
      given: has_body ? { body } : {},
      for_operators_flag: for_operators === undefined ? {} : { operator: operators(operation) },
      shared,
    },
    Effect.fn(function* ({ at, typed, limited, waited, given, for_operators_flag, shared }) {
      const fields = withoutOptions(typed)
      const is_whole = "body" in given && given.body !== ""
      // Before the session, which may sign in: nothing is sent for an incomplete command line.
      if (!is_whole) yield* attempt(() => requireFlags(operation, fields))
      yield* withSession(shared, async (session) => {
        const input = {
          arguments: at,
          fields,
          body: "body" in given ? await readBody(String(given.body), session.signal) : undefined,
          for_operators: "operator" in for_operators_flag && for_operators_flag.operator === true,
          limit: "limit" in limited ? Number(limited.limit) : 0,
          wait: "wait" in waited && waited.wait === true,
        }
        await runOperation(session, operation, input)
      })
    }),
  ).pipe(
    Command.withDescription(what),
    Command.withExamples([{ command: example(group, operation), description: what }]),
  )
  return alias === undefined ? command : command.pipe(Command.withAlias(alias))
}

/** The subcommands of a command group. */
export const subcommandsOf = ({ name, operations }: CommandGroup) =>
  operations.map((operation) => operationCommand(name, operation))

/** The example in the help of a command group: that of its first subcommand. */
const firstExample = ({ name, operations }: CommandGroup) =>
  operations
    .slice(0, 1)
    .map((operation) => ({ command: example(name, operation), description: operation.what }))

/** A command group with its subcommands. */
export const groupCommand = (group: CommandGroup) =>
  Command.make(group.name).pipe(
    Command.withDescription(summaries[group.name]),
    Command.withExamples(firstExample(group)),
    Command.withSubcommands(subcommandsOf(group)),
  )
