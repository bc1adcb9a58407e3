/** `almanac rebuild`: rebuilds read models from the log, or compares them with it. */

import { Console, Effect, Layer, Runtime, Schema } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import type { Instance } from "#adapters/data-folder/instance-file.ts"
import { json } from "#cli/audit/flags.ts"
import { summaries } from "#cli/client/summaries.ts"
import { callInstance, instance } from "#cli/instance.ts"
import { settings } from "#cli/root.ts"
import { ReadModelDifference } from "#gateway/system/apis/read-models.ts"
import type { Settings } from "#schemas/settings.ts"
import { databases, read_models } from "#server/read-models.ts"
import { exclusive } from "#server/session.ts"

/** Unknown name of a read model; nothing was done: exit code 2. */
class NoReadModel extends Schema.TaggedError<NoReadModel>()("NoReadModel", {
  message: Schema.String,
}) {
  override readonly [Runtime.errorExitCode] = 2
}

/** Rows differ, which the command printed: exit code 1. */
class ReadModelDiffers extends Schema.TaggedError<ReadModelDiffers>()("ReadModelDiffers", {
  message: Schema.String,
}) {
  override readonly [Runtime.errorExitCode] = 1
}

/** Several read models were requested, and some failed, which the command printed: exit code 1. */
class ReadModelsFailed extends Schema.TaggedError<ReadModelsFailed>()("ReadModelsFailed", {
  message: Schema.String,
}) {
  override readonly [Runtime.errorExitCode] = 1
}

const Differs = Schema.fromJsonString(ReadModelDifference)

const Rebuilt = Schema.fromJsonString(Schema.Struct({ position: Schema.Int }))

interface Reported {
  readonly message: string
}

/**
 * Runs `work` for each read model, although another one fails. Prints each failure; fails after the
 * last read model if there was any.
 */
const forEachModel = Effect.fnUntraced(function* <A, E extends Reported, R>(
  names: ReadonlyArray<string>,
  work: (name: string) => Effect.Effect<A, E, R>,
) {
  const report = (name: string) => (failure: E) =>
    names.length > 1 ? Console.error(`almanac: ${name}: ${failure.message}`) : Effect.void
  const [done, failures] = yield* Effect.partition(names, (name) =>
    Effect.tapError(work(name), report(name)),
  )
  const [first] = failures
  if (first === undefined) return done
  if (names.length === 1) return yield* Effect.fail(first)
  return yield* new ReadModelsFailed({ message: `${failures.length} of ${names.length} failed` })
})

/** Rebuilds through the running instance, the only writer of its read models. */
const rebuildBy = (running: Instance, of: Settings) => (name: string) =>
  callInstance(running, of, "POST", `/v1/admin/read-models/${name}/rebuild`).pipe(
    Effect.flatMap(Schema.decodeEffect(Rebuilt)),
    Effect.map(({ position }) => position),
  )

const compareBy = (running: Instance, of: Settings) => (name: string) =>
  Effect.flatMap(
    callInstance(running, of, "POST", `/v1/admin/read-models/${name}/difference`),
    Schema.decodeEffect(Differs),
  )

type Opened = typeof read_models extends Map<string, infer Open> ? Effect.Success<Open> : never

/** Opens the read model without a running instance. */
const opened = (name: string) => {
  const open = read_models.get(name)
  return open ?? Effect.die(new Error(`no read model ${name}`))
}

const locally = <A, E extends Reported>(
  of: Settings,
  names: ReadonlyArray<string>,
  work: (name: string, model: Opened) => Effect.Effect<A, E>,
) =>
  forEachModel(names, (name) => Effect.flatMap(opened(name), (model) => work(name, model))).pipe(
    Effect.scoped,
    Effect.provide(Layer.merge(exclusive(of), databases(of, true))),
  )

const rebuildAll = Effect.fnUntraced(function* (of: Settings, names: ReadonlyArray<string>) {
  const print = (name: string) => (position: number) =>
    Console.log(`${name}: rebuilt to position ${position}`)
  const running = yield* instance(of)
  yield* running === undefined
    ? locally(of, names, (name, { rebuild }) => Effect.flatMap(rebuild, print(name)))
    : forEachModel(names, (name) => Effect.flatMap(rebuildBy(running, of)(name), print(name)))
})

/** Prints the differences, one per line. ReadModelDiffers if there are any. */
const compareAll = Effect.fnUntraced(function* (
  of: Settings,
  names: ReadonlyArray<string>,
  as_json: boolean,
) {
  const print = (found: ReadModelDifference) =>
    Effect.as(Console.log(as_json ? JSON.stringify(found) : differenceText(found)), found.count)
  const running = yield* instance(of)
  const counts = yield* running === undefined
    ? locally(of, names, (name, { difference }) =>
        Effect.flatMap(difference, (found) => print({ name, ...found })),
      )
    : forEachModel(names, (name) => Effect.flatMap(compareBy(running, of)(name), print))
  if (counts.some((count) => count > 0)) {
    return yield* new ReadModelDiffers({ message: "A read model differs from the log." })
  }
})

const rowLine = ({ table, key, kind, columns }: ReadModelDifference["rows"][number]) => {
  const changes = columns.map(
    ({ column, kept, rebuilt }) =>
      `${column} is ${JSON.stringify(kept)}, but ${JSON.stringify(rebuilt)} in the log`,
  )
  return [`  ${kind} ${table} ${JSON.stringify(key)}`, ...changes].join(" ")
}

const differenceText = ({ name, position, tables, count, rows }: ReadModelDifference) => {
  const outcome = count === 0 ? "equals the log" : `${count} rows differ`
  return [`${name}: ${outcome}, ${tables} tables at position ${position}`, ...rows.map(rowLine)]
    .join("\n")
    .replaceAll(/[\p{Cc}--\n]/gv, "?")
}

const names = Argument.String("name").pipe(
  Argument.withDescription(`Read model: ${[...read_models.keys()].join(", ")} (default: all)`),
  Argument.variadic(),
)

/** The named read models, or all. */
const selectNames = Effect.fnUntraced(function* (selected: ReadonlyArray<string>) {
  const unknown = selected.find((name) => !read_models.has(name))
  if (unknown === undefined) return selected.length > 0 ? selected : [...read_models.keys()]
  const known = [...read_models.keys()].join(", ")
  return yield* new NoReadModel({ message: `unknown read model ${unknown}: use any of ${known}` })
})

/** `almanac audit diff`: the same as `rebuild --diff`. */
export const diff = Command.make(
  "diff",
  { names, json },
  Effect.fn(function* ({ names, json }) {
    yield* compareAll(yield* settings, yield* selectNames(names), json)
  }),
).pipe(
  Command.withDescription(
    "Compare read models with the log: exit code 1 if a row differs, 2 for an unknown name",
  ),
  Command.withExamples([
    { command: "almanac audit diff", description: "All read models" },
    { command: "almanac audit diff share-protection", description: "One read model" },
  ]),
)

export const rebuild = Command.make(
  "rebuild",
  {
    names,
    diff: Flag.Boolean("diff").pipe(
      Flag.withDescription("Only compare: exit code 1 if a row differs, 2 for an unknown name"),
      Flag.withDefault(false),
    ),
  },
  Effect.fn(function* ({ names, diff }) {
    const configured = yield* settings
    const selected = yield* selectNames(names)
    if (diff) yield* compareAll(configured, selected, false)
    else yield* rebuildAll(configured, selected)
  }),
).pipe(
  Command.withDescription(summaries.rebuild),
  Command.withExamples([
    { command: "almanac rebuild", description: "All read models" },
    { command: "almanac rebuild blob-storage", description: "One read model" },
    { command: "almanac rebuild --diff", description: "Change nothing; list the differences" },
  ]),
)
