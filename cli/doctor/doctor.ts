/** `almanac doctor`: checks this machine or a deployment. */

import { Console, Effect, Runtime, Schema } from "effect"
import { Command, Flag } from "effect/cli"
import { type Finding, listNames, ok } from "#adapters/doctor/finding.ts"
import { screen } from "#cli/client/screen.ts"
import { summaries } from "#cli/client/summaries.ts"
import { localFindings, remoteFindings } from "#cli/doctor/checks.ts"
import { wrapped } from "#cli/help.ts"

/** Some checks failed; the printed lines say why: exit code 1. */
class ChecksFailed extends Schema.TaggedError<ChecksFailed>()("ChecksFailed", {
  message: Schema.String,
}) {
  override readonly [Runtime.errorExitCode] = 1
}

/** Maximum number of checks on one command line. */
const only_max = 50

const word_chars = 12

/** One finding: status, check and reason, which wraps at the width of a terminal. */
export const findingText = ({ status, what, why }: Finding, { columns } = screen()) => {
  const start = `${status.padEnd(4)}  ${what.padEnd(word_chars)}  `
  if (columns === undefined) return start + why
  const lines = wrapped(why, Math.max(word_chars, columns - start.length))
  return start + lines.join(`\n${" ".repeat(start.length)}`)
}

export const doctor = Command.make(
  "doctor",
  {
    url: Flag.String("url").pipe(
      Flag.withDescription("Check a remote gateway over HTTP only; its token is in ALMANAC_TOKEN"),
      Flag.withDefault(""),
    ),
    json: Flag.Boolean("json").pipe(
      Flag.withDescription("Print JSON: a list of {status, what, why}"),
      Flag.withDefault(false),
    ),
    only: Flag.String("only").pipe(
      Flag.withDescription("Run only this check, such as log-end (repeatable)"),
      Flag.between(0, only_max),
    ),
  },
  Effect.fn(function* ({ url, json, only }) {
    const data_dir = process.env.ALMANAC_DATA_DIR || "./data"
    const found = yield* url === "" ? localFindings(only) : remoteFindings(url, data_dir, only)
    const nothing = ok(only.join(", "), "Nothing to check.")
    const all = found.length === 0 ? [nothing] : found
    if (json) yield* Console.log(JSON.stringify(all))
    else for (const one of all) yield* Console.log(findingText(one))
    const failed = all.filter(({ status }) => status === "fail").map(({ what }) => what)
    if (failed.length > 0) {
      return yield* new ChecksFailed({
        message: `failed checks: ${listNames([...new Set(failed)])}`,
      })
    }
  }),
).pipe(
  Command.withDescription(summaries.doctor),
  Command.withExamples([
    { command: "almanac doctor", description: "This machine and its server" },
    { command: "almanac doctor --json", description: "Print JSON" },
    { command: "almanac doctor --only log-end --only disk", description: "Only two checks" },
    {
      command: "almanac doctor --url https://backup.example.com",
      description: "A remote gateway, with a token in ALMANAC_TOKEN",
    },
  ]),
)
