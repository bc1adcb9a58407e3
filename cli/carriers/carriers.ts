/**
 * `almanac carriers`: fills the mirror of the carrier registry from FMCSA's public files.
 *
 * Source: decisions of document 3, carrier registry; market facts B2.
 */

import { existsSync } from "node:fs"
import { Clock, Console, Effect, Option, Runtime, Schema } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import { demoCarriers } from "#adapters/carrier-search/demo.ts"
import { carrierFile } from "#adapters/carrier-search/file.ts"
import {
  type FileReport,
  type ImportReport,
  importCarriers,
} from "#adapters/carrier-search/import.ts"
import { mirrorFile } from "#adapters/carrier-search/mirror.ts"
import { openMirror, reasonOf } from "#adapters/carrier-search/mirror-file.ts"
import { carriers as group } from "#cli/client/carrier-search/carrier.ts"
import { summaries } from "#cli/client/summaries.ts"
import { withInterruptExitCode } from "#cli/dashboard/ingest-outcome.ts"
import { progressTo } from "#cli/progress.ts"
import { subcommandsOf } from "#cli/requests.ts"
import { settings } from "#cli/root.ts"
import { CalendarDate } from "#schemas/capital-pressure/day.ts"
import { causeText } from "#schemas/cause-text.ts"

/** Nothing was imported and the mirror is unchanged: exit code 1. */
class ImportFailed extends Schema.TaggedError<ImportFailed>()("ImportFailed", {
  message: Schema.String,
}) {}

/** The mirror was filled, except for some invalid rows: exit code 2. */
class RowsRejected extends Schema.TaggedError<RowsRejected>()("RowsRejected", {
  message: Schema.String,
}) {
  override readonly [Runtime.errorExitCode] = 2
}

/** No usable mirror: exit code 1. */
class NoMirror extends Schema.TaggedError<NoMirror>()("NoMirror", { message: Schema.String }) {}

/** Maximum number of files on one command line: pages of one download. */
const files_max = 1000
const megabyte = 1_000_000

const failed = (error: unknown) =>
  new ImportFailed({ message: `nothing was imported: ${causeText(error)}` })

const sum = (values: ReadonlyArray<number>) => values.reduce((total, value) => total + value, 0)
const countText = (count: number, one: string) =>
  `${count.toLocaleString("en-US")} ${one}${count === 1 ? "" : "s"}`
const dateOf = (instant: string) => instant.slice(0, "YYYY-MM-DD".length)

const rejectedRows = ({ rejected }: FileReport) => sum(rejected.map(({ rows }) => rows))

/** `legacy.csv (legacy, as of 2026-05-14): 1,860,604 rows, 412,004 of active carriers` */
const lineOf = (report: FileReport) => {
  const { name, kind, as_of, rows, active, superseded, other } = report
  const parts = [
    countText(rows, "row"),
    `${active.toLocaleString("en-US")} of active carriers`,
    ...(superseded > 0 ? [`${superseded.toLocaleString("en-US")} superseded by Motus`] : []),
    ...(other > 0 ? [`${other.toLocaleString("en-US")} without the prefix MC`] : []),
    ...(rejectedRows(report) > 0
      ? [`${rejectedRows(report).toLocaleString("en-US")} unusable`]
      : []),
  ]
  return `${name} (${kind}, as of ${dateOf(as_of)}): ${parts.join(", ")}`
}

const rejectionsOf = (report: FileReport) =>
  report.rejected.map(
    ({ problem, rows, first }) =>
      `  unusable: ${countText(rows, "row")} with ${problem}, first in line ${first}`,
  )

/** Advice on the other of the two files. Source: market facts B2. */
const noteOn = ({ files }: ImportReport) => {
  const has = (kind: FileReport["kind"]) => files.some((file) => file.kind === kind)
  if (!has("motus"))
    return ["Without the Motus file, the mirror lacks all carriers since May 2026."]
  if (!has("legacy")) return ["Without the legacy file, the mirror lacks most carriers."]
  return []
}

const demo_note =
  "These carriers are generated. None of them exists, and each name begins with DEMO."

const reportText = (report: ImportReport, path: string, is_demo: boolean) =>
  [
    ...report.files.flatMap((file) => [lineOf(file), ...rejectionsOf(file)]),
    `The mirror has ${countText(report.numbers, "MC number")} and ` +
      `${countText(report.carriers, "active carrier")}: ${path}`,
    ...(is_demo ? [demo_note] : noteOn(report)),
  ].join("\n")

interface Flags {
  readonly files: ReadonlyArray<string>
  readonly demo: boolean
  readonly as_of: Option.Option<string>
}

/** Refuses to replace real carriers with generated ones. */
const refuseMixed = (path: string, { files, demo, as_of }: Flags) => {
  if (!demo) {
    return files.length === 0 ? Effect.fail(failed("name the files, or use --demo")) : Effect.void
  }
  if (files.length > 0 || Option.isSome(as_of)) {
    return Effect.fail(failed("--demo generates all carriers and excludes files and --as-of"))
  }
  if (!existsSync(path)) return Effect.void
  return Effect.try({
    try: () => {
      const { file, mirror } = openMirror(path)
      file.close()
      return mirror.is_demo
    },
    catch: () => failed(`${path} exists and is not a demo mirror; remove it first`),
  }).pipe(
    Effect.filterOrFail(
      (is_demo) => is_demo,
      () => failed(`${path} has real carriers; remove it first, or set carrier.mirror`),
    ),
    Effect.asVoid,
  )
}

/** The error of reading this file, which names the file. */
const ofFile = (path: string, error: unknown) => {
  const reason = causeText(error)
  return reason.includes(path) ? error : new Error(`${path}: ${reason}`)
}

const named = <A>(path: string, open: () => A) => {
  try {
    return open()
  } catch (error) {
    throw ofFile(path, error)
  }
}

async function* namedBytes(path: string, bytes: AsyncIterable<Buffer>) {
  try {
    yield* bytes
  } catch (error) {
    throw ofFile(path, error)
  }
}

const filesOf = ({ files, demo, as_of }: Flags, now: Date) => {
  const seen = { bytes: 0 }
  if (demo) return { files: [demoCarriers(now.toISOString())], seen, size: 0 }
  const day = Option.getOrUndefined(as_of)
  const opened = files.map((path) => {
    const file = named(path, () =>
      carrierFile(path, {
        as_of: day === undefined ? undefined : `${day}T00:00:00.000Z`,
        now,
        onRead: (bytes) => {
          seen.bytes += bytes
        },
      }),
    )
    return { ...file, bytes: () => namedBytes(path, file.bytes()) }
  })
  return { files: opened, seen, size: sum(opened.map(({ size }) => size)) }
}

const imported = Effect.fnUntraced(function* (path: string, flags: Flags) {
  const now = new Date(yield* Clock.currentTimeMillis)
  const { files, seen, size } = yield* Effect.try({ try: () => filesOf(flags, now), catch: failed })
  const progress = progressTo(files.length)
  const last_drawn = { megabytes: 0 }
  /** Redraws progress per megabyte. */
  const observed_files = files.map((file) => ({
    ...file,
    bytes: async function* () {
      for await (const chunk of file.bytes()) {
        yield chunk
        const megabytes = Math.floor(seen.bytes / megabyte)
        if (megabytes === last_drawn.megabytes) continue
        last_drawn.megabytes = megabytes
        progress.at(`MB of ${file.name}`, megabytes, Math.ceil(size / megabyte))
      }
    },
  }))
  return yield* Effect.tryPromise({
    try: (signal) =>
      importCarriers({
        path,
        signal,
        files: observed_files,
        is_demo: flags.demo,
        imported_at: now.toISOString(),
        onFile: (report) => Effect.runSync(progress.done(lineOf(report))),
      }),
    catch: failed,
  }).pipe(Effect.ensuring(progress.end))
})

const importing = Command.make(
  "import",
  {
    files: Argument.String("file").pipe(
      Argument.withDescription("CSV files of FMCSA, legacy and Motus, optionally gzipped"),
      Argument.between(0, files_max),
    ),
    demo: Flag.Boolean("demo").pipe(
      Flag.withDescription("Generate 60,000 dockets instead; their names begin with DEMO"),
      Flag.withDefault(false),
    ),
    as_of: Flag.String("as-of").pipe(
      Flag.withDescription(
        "Date of the Motus files, YYYY-MM-DD (default: when they were modified)",
      ),
      Flag.withSchema(CalendarDate),
      Flag.optional,
    ),
  },
  Effect.fn(function* (flags) {
    const path = mirrorFile(yield* settings)
    yield* refuseMixed(path, flags)
    const report = yield* imported(path, flags)
    yield* Console.log(reportText(report, path, flags.demo))
    const rejected = sum(report.files.map(rejectedRows))
    if (rejected > 0) {
      return yield* new RowsRejected({
        message: `${countText(rejected, "row")} could not be imported`,
      })
    }
  }, withInterruptExitCode),
).pipe(
  Command.withDescription(
    "Replace the mirror by these files: exit code 0, 2 if some rows could not be imported, 1 if " +
      "nothing was imported, 130 if it was interrupted. Name all files at once. A running " +
      "search ends on the old mirror; the next one uses the new mirror.",
  ),
  Command.withExamples([
    {
      command: "almanac carriers import legacy.csv motus.csv --as-of 2026-11-20",
      description: "Both files of data.transportation.gov: 6eyk-hxee and inys-ebih",
    },
    {
      command: "almanac carriers import --demo",
      description: "Generated carriers for trying a search",
    },
  ]),
)

const status = Command.make(
  "status",
  {},
  Effect.fn(function* () {
    const path = mirrorFile(yield* settings)
    const { file, mirror } = yield* Effect.try({
      try: () => openMirror(path),
      catch: (error) => new NoMirror({ message: `${path}: ${reasonOf(error)}` }),
    })
    file.close()
    const { numbers, carriers, imported_at, is_demo, sources } = mirror
    const lines = [
      path,
      `${countText(numbers, "MC number")}, ${countText(carriers, "active carrier")}`,
      `imported ${imported_at}`,
      ...sources.map(
        ({ kind, file, as_of, rows }) =>
          `${kind}, as of ${dateOf(as_of)}: ${countText(rows, "row")} of ${file}`,
      ),
      ...(is_demo ? [demo_note] : []),
    ]
    yield* Console.log(lines.join("\n"))
  }),
).pipe(
  Command.withDescription("Show the contents and the age of the mirror"),
  Command.withExamples([{ command: "almanac carriers status", description: "Age and counts" }]),
)

export const carriers = Command.make("carriers").pipe(
  Command.withDescription(summaries.carriers),
  Command.withExamples(importing.examples),
  Command.withSubcommands([...subcommandsOf(group), importing, status]),
)
