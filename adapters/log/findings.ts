/** Findings of `almanac doctor` about lost commits. */
import { Effect } from "effect"
import { type Finding, fail, ok } from "#adapters/doctor/finding.ts"
import { Log } from "#events/log.ts"
import { findingText, remedy } from "#events/log-guard.ts"
import { compareWith, LogWatch, readWitnesses } from "#journal"

/** Compares the log with the high-water mark, read models and the blob store. */
export const lossFindings = Effect.fnUntraced(function* (data_dir: string, blob_dir: string) {
  const watch = yield* LogWatch
  const witnesses = yield* readWitnesses(data_dir, blob_dir)
  yield* compareWith(watch, witnesses)
  const findings = watch.findings()
  if (findings.length > 0) {
    return findings.map((finding): Finding => fail("log end", `${findingText(finding)}. ${remedy}`))
  }
  const end = yield* (yield* Log).end
  const mark = watch.known()
  const mark_text =
    mark === undefined ? "no high-water mark exists yet" : `the high-water mark is ${mark.position}`
  return [
    ok("log end", `position ${end}; ${mark_text}, and ${witnesses.length} other witnesses agree`),
  ]
})
