/** `almanac audit export`: writes the log, or a part of it, to a file that others can verify. */
import { open } from "node:fs/promises"
import { pipeline } from "node:stream/promises"
import { createGzip } from "node:zlib"
import { Console, Effect, Option, Stream } from "effect"
import { Command, Flag } from "effect/cli"
import { type ExportRequest, exportChunks, partOf } from "#actors/system/export.ts"
import { time } from "#cli/audit/flags.ts"
import { CannotRun } from "#cli/audit/outcome.ts"
import { settings } from "#cli/root.ts"
import { causeText } from "#schemas/cause-text.ts"
import { ExportQuery } from "#schemas/system/audit.ts"
import { witnessed } from "#server/session.ts"

export interface ExportTo {
  /** A new file, mode 0600. */
  readonly path: string
  readonly gzip: boolean
}

/** Writes the export. CannotRun if the file exists or cannot be written. */
export const exportTo = Effect.fnUntraced(function* (
  request: ExportRequest,
  { path, gzip }: ExportTo,
) {
  const failed = (cause: unknown) => {
    const why = causeText(cause)
    return new CannotRun({ message: `${path} cannot be written: ${why}` })
  }
  const file = yield* Effect.tryPromise({ try: () => open(path, "wx", 0o600), catch: failed })
  const pieces = yield* Stream.toAsyncIterableEffect(exportChunks(request))
  yield* Effect.tryPromise({
    try: async () => {
      const out = file.createWriteStream({ flush: true })
      // Backpressure: reading the log waits for the disk.
      if (gzip) await pipeline(pieces, createGzip(), out)
      else await pipeline(pieces, out)
    },
    catch: failed,
  })
  yield* Console.log(`exported to ${path}`)
})

export const exportCommand = Command.make(
  "export",
  {
    since: time("since", "Start time"),
    until: time("until", "End time, exclusive"),
    service: Flag.String("service").pipe(
      Flag.withDescription("Only commits of this service"),
      Flag.withSchema(ExportQuery.service.schema),
      Flag.optional,
    ),
    aggregate: Flag.String("aggregate").pipe(
      Flag.withDescription("Only this kind (with --service), or service.aggregate.id"),
      Flag.withSchema(ExportQuery.aggregate.schema),
      Flag.optional,
    ),
    format: Flag.Literals("format", ["ndjson"]).pipe(
      Flag.withDescription("File format: one JSON object per line"),
      Flag.withDefault("ndjson" as const),
    ),
    gzip: Flag.Boolean("gzip").pipe(
      Flag.withDescription("Compress the file"),
      Flag.withDefault(false),
    ),
    out: Flag.String("out").pipe(
      Flag.withDescription("New file; an existing file is not overwritten"),
    ),
  },
  Effect.fn(function* ({ since, until, service, aggregate, gzip, out }) {
    const configured = yield* settings
    const part = partOf(Option.getOrUndefined(service), Option.getOrUndefined(aggregate))
    if (part === undefined) {
      const message =
        "Use --aggregate KIND with --service, or --aggregate service.aggregate.id alone."
      return yield* new CannotRun({ message })
    }
    const times = { since: Option.getOrUndefined(since), until: Option.getOrUndefined(until) }
    yield* Effect.provide(exportTo({ part, ...times }, { path: out, gzip }), witnessed(configured))
  }),
).pipe(
  Command.withDescription(
    "Write the log to a file, one commit per line; the last line is a manifest",
  ),
  Command.withExamples([
    {
      command: "almanac audit export --since 2026-11-20T00:00:00Z --gzip --out log.ndjson.gz",
      description: "Commits since midnight",
    },
  ]),
)
