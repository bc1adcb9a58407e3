/** `almanac audit verify`: verifies the integrity of the log. */
import { Cause, Console, Effect, Option, Schema } from "effect"
import { Command, Flag } from "effect/cli"
import type { AnyDecider } from "#actors/decider.ts"
import { type Verification, verify as walk } from "#actors/system/verification.ts"
import { json } from "#cli/audit/flags.ts"
import { lastPosition, requireReached } from "#cli/audit/log-end.ts"
import { CannotRun, LogFaulty } from "#cli/audit/outcome.ts"
import { settings } from "#cli/root.ts"
import type { Log, LogUnavailable } from "#events/log.ts"
import { type Finding, findingText } from "#events/log-guard.ts"
import { compareWith, LogWatch, readWitnesses } from "#journal"
import { causeText } from "#schemas/cause-text.ts"
import type { Settings } from "#schemas/settings.ts"
import type { Fault } from "#schemas/system/audit.ts"
import { deciders } from "#server/aggregate-kinds.ts"
import { attachedLogReadOnly } from "#server/session.ts"

/** Default number of faults to print: the first ones are the most useful. */
const faults_shown = 20
const faults_shown_max = 10_000

const faultLine = ({ kind, position, stream, expected, found }: Fault) =>
  `${position} ${stream} ${kind}: expected ${expected}; found ${found}`

const summary = (found: Verification) => {
  const { commits, streams, checkpoints, unsealed, folded, position, root, fault_count } = found
  const { acknowledged } = found
  const known = acknowledged === 0 ? "" : `, ${acknowledged} unreadable and acknowledged`
  const outcome = `${fault_count === 0 ? "intact" : `${fault_count} faults`}${known}`
  return (
    `${outcome}: ${commits} commits of ${streams} aggregates up to ${position}, ` +
    `${folded} snapshots folded, ${checkpoints} checkpoints, ${unsealed} commits after the last, ` +
    `root ${root}`
  )
}

/** Progress line on a terminal. */
const progress = (position: number, head: number) =>
  Effect.sync(() => {
    if (process.stderr.isTTY) process.stderr.write(`\r${position} of ${head} `)
    if (process.stderr.isTTY && position === head) process.stderr.write("\n")
  })

export interface VerifyOptions {
  readonly deciders: ReadonlyArray<AnyDecider>
  readonly faults_max: number
  readonly as_json: boolean
  readonly until?: number | undefined
  /** Findings from outside the log, evaluated after the scan. */
  readonly findings?: Effect.Effect<ReadonlyArray<Finding>, LogUnavailable, Log>
}

/** Converts findings to faults, except gaps, which the scan reports itself. */
const faultsOf = (findings: ReadonlyArray<Finding>): ReadonlyArray<Fault> =>
  findings
    .filter(({ kind }) => kind !== "gap")
    .map((finding) => ({
      kind: "loss",
      position: finding.head,
      stream: "log",
      expected: `the commits that ${finding.witness} has, up to ${finding.position}`,
      found: findingText(finding),
    }))

/** Scans the log and prints its faults. LogFaulty if there are any. */
export const verifyLog = Effect.fnUntraced(function* (options: VerifyOptions) {
  const { as_json, findings = Effect.succeed([]), ...scan_options } = options
  yield* requireReached(options.until, yield* lastPosition)
  const scanned = yield* walk({ ...scan_options, onProgress: progress })
  const losses = faultsOf(yield* findings)
  const found = {
    ...scanned,
    fault_count: scanned.fault_count + losses.length,
    faults: [...scanned.faults, ...losses],
  }
  if (as_json) yield* Console.log(JSON.stringify(found))
  else {
    for (const fault of found.faults) yield* Console.log(faultLine(fault))
    yield* Console.log(summary(found))
  }
  if (found.fault_count > 0) return yield* new LogFaulty({ message: "The log has faults." })
})

/** Commits known to the high-water mark or read models but missing from the log. */
const findLosses = Effect.fnUntraced(function* ({ data, blob }: Settings) {
  const watch = Option.getOrUndefined(yield* Effect.serviceOption(LogWatch))
  if (watch === undefined) return []
  yield* compareWith(watch, yield* readWitnesses(data.dir, blob.dir))
  return watch.findings()
})

/** Maps all other errors, including unreadable commits: the result is unknown. */
const cannotRun = (cause: Cause.Cause<unknown>) => {
  const error = Cause.squash(cause)
  const is_ours = error instanceof LogFaulty || error instanceof CannotRun
  if (is_ours || Cause.hasInterruptsOnly(cause)) return Effect.failCause(cause)
  const message = causeText(error)
  return Effect.fail(new CannotRun({ message: `The log could not be verified: ${message}` }))
}

export const verify = Command.make(
  "verify",
  {
    faults: Flag.Int("faults").pipe(
      Flag.withDescription("Maximum number of faults to print; all are counted"),
      Flag.withSchema(
        Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: faults_shown_max })),
      ),
      Flag.withDefault(faults_shown),
    ),
    until: Flag.Int("until").pipe(
      Flag.withDescription("Last position to verify; its root is printed"),
      Flag.withSchema(Schema.Int.check(Schema.isGreaterThanOrEqualTo(1))),
      Flag.optional,
    ),
    json,
  },
  Effect.fn(function* ({ faults, until, json }) {
    const configured = yield* settings
    const options = {
      deciders,
      faults_max: faults,
      as_json: json,
      until: Option.getOrUndefined(until),
      findings: Option.isSome(until) ? Effect.succeed([]) : findLosses(configured),
    }
    yield* Effect.provide(verifyLog(options), attachedLogReadOnly(configured))
  }, Effect.catchCause(cannotRun)),
).pipe(
  Command.withDescription(
    "Verify the integrity of the log: exit code 0, 1 if it has faults, 2 if it cannot be verified",
  ),
  Command.withExamples([
    { command: "almanac audit verify", description: "Verify the whole log" },
    { command: "almanac audit verify --json", description: "Print JSON" },
  ]),
)
