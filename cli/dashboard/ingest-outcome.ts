/** Exit codes and the summary table of an ingest. */
import { Effect, Runtime, Schema } from "effect"
import { Unavailable } from "#actors/commands.ts"
import { screen } from "#cli/client/screen.ts"
import { truncated } from "#cli/client/table.ts"
import type { FeedReport } from "#cli/dashboard/ingest-run.ts"
import { LogUnavailable } from "#events/log.ts"
import { DemoMixed } from "#schemas/capital-pressure/rejection.ts"

/** Some feeds failed and the others were stored: exit code 2. */
export class SomeFailed extends Schema.TaggedError<SomeFailed>()("SomeFailed", {
  message: Schema.String,
}) {
  override readonly [Runtime.errorExitCode] = 2
}

/** No feed could be read, or none was selected: exit code 1. */
export class NoneIngested extends Schema.TaggedError<NoneIngested>()("NoneIngested", {
  message: Schema.String,
}) {
  override readonly [Runtime.errorExitCode] = 1
}

/** Exit code of an interrupted command in shells. */
const interrupted = 130

/** Sets the exit code of an interrupted command, so that it does not report success. */
export const withInterruptExitCode = <A, E, R>(work: Effect.Effect<A, E, R>) =>
  Effect.onInterrupt(work, () =>
    Effect.sync(() => {
      process.exitCode = interrupted
    }),
  )

/** Rewords failures of the log for the user. */
export const rewordLogFailures = <A, E, R>(work: Effect.Effect<A, E, R>) =>
  Effect.mapError(work, (failure) => {
    if (failure instanceof DemoMixed) return new NoneIngested({ message: failure.detail })
    if (failure instanceof Unavailable || failure instanceof LogUnavailable) {
      return new NoneIngested({ message: `the log is unavailable: ${failure.detail}` })
    }
    return failure
  })

/** Replaces control characters: a publisher's text must not control the terminal. */
const printable = (text: string) => text.replaceAll(/\p{Cc}/gu, "?")

/** Cells of a feed's row after its name. */
const cellsOf = (report: FeedReport): ReadonlyArray<string> => {
  if (report.outcome === "failed") return ["-", "-", "-", printable(report.detail)]
  const { observed, revised, newest, is_unchanged } = report
  const counts = [`${observed}`, `${revised}`, newest ?? "-"]
  return [...counts, is_unchanged ? "unchanged at the publisher" : ""]
}

const head = ["FEED", "NEW", "REVISED", "NEWEST", ""]

/** A table of all feeds with a header; the last column holds errors. It fits the terminal. */
export const summary = (feeds: ReadonlyArray<FeedReport>, { columns } = screen()) => {
  const rows = [head, ...feeds.map((report) => [report.feed, ...cellsOf(report)])]
  const widths = head.map((_, i) => Math.max(...rows.map((row) => row[i]?.length ?? 0)))
  const isNumber = (column: number) => column === 1 || column === 2
  return rows
    .map((row) =>
      row
        .map((cell, i) =>
          isNumber(i) ? cell.padStart(widths[i] ?? 0) : cell.padEnd(widths[i] ?? 0),
        )
        .join("  ")
        .trimEnd(),
    )
    .map((line) => (columns === undefined ? line : truncated(line, columns)))
    .join("\n")
}

/** `nfci: 12 new, 3 revised, newest 2026-11-13` */
export const lineOf = (report: FeedReport) => {
  if (report.outcome === "failed") return `${report.feed}: ${report.detail}`
  const { feed, observed, revised, newest } = report
  return `${feed}: ${observed} new, ${revised} revised, newest ${newest ?? "-"}`
}

/** Fails with the exit code of the outcome; succeeds if every feed was read. */
export const outcomeOf = (feeds: ReadonlyArray<FeedReport>) => {
  const failed = feeds.filter((report) => report.outcome === "failed")
  const [first] = failed
  if (first === undefined) return Effect.void
  const names = failed.map(({ feed }) => feed).join(", ")
  const message = printable(
    `${failed.length} of ${feeds.length} feeds failed: ${names}. ${first.detail}`,
  )
  const is_all = failed.length === feeds.length
  return Effect.fail(is_all ? new NoneIngested({ message }) : new SomeFailed({ message }))
}
