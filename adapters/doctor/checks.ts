/**
 * Runs the checks of a deployment independently: a failing or hanging check does not affect others.
 */
import { Cause, Effect, Predicate, Schema } from "effect"
import { type Finding, fail } from "#adapters/doctor/finding.ts"
import { causeText } from "#schemas/cause-text.ts"

export interface Check<R = never> {
  /** Name for `--only`: the `what` of its findings, with hyphens. */
  readonly name: string
  /** A check that must run before this one. */
  readonly needs?: string
  readonly run: Effect.Effect<Finding | ReadonlyArray<Finding>, unknown, R>
}

/** Timeout of a check in milliseconds, which is reported as a finding. */
const check_ms_max = 20_000

/** The `what` of a check's findings. */
const whatOf = (name: string) => name.replaceAll("-", " ")

/** Text of a failure: its `detail` if it is one of ours. */
const failureText = (cause: Cause.Cause<unknown>) => {
  const failure = Cause.squash(cause)
  return Predicate.hasProperty(failure, "detail") && typeof failure.detail === "string"
    ? failure.detail
    : causeText(failure) || "It does not respond."
}

/** Runs one check; failures and timeouts become findings. */
const runCheck = <R>(
  { name, run }: Check<R>,
  ms_max = check_ms_max,
): Effect.Effect<ReadonlyArray<Finding>, never, R> =>
  Effect.suspend(() => run).pipe(
    Effect.map((found) => [found].flat()),
    Effect.timeoutOrElse({
      duration: ms_max,
      orElse: () =>
        Effect.succeed([fail(whatOf(name), `It does not respond within ${ms_max / 1000} s.`)]),
    }),
    Effect.catchCause((cause) => Effect.succeed([fail(whatOf(name), failureText(cause))])),
  )

export const runChecks = <R>(checks: ReadonlyArray<Check<R>>) =>
  Effect.map(
    Effect.forEach(checks, (check) => runCheck(check)),
    (found) => found.flat(),
  )

/** A check that returns a promise. */
export const promiseCheck = (
  name: string,
  run: () => Promise<Finding | ReadonlyArray<Finding>>,
): Check => ({ name, run: Effect.tryPromise({ try: run, catch: (cause) => cause }) })

/** There are no checks with these names; the message lists the valid ones. */
export class UnknownCheck extends Schema.TaggedError<UnknownCheck>()("UnknownCheck", {
  message: Schema.String,
}) {}

/** The checks with these names and those that they need; all checks if there are no names. */
export const selectChecks = <R>(
  checks: ReadonlyArray<Check<R>>,
  names: ReadonlyArray<string>,
): ReadonlyArray<Check<R>> => {
  if (names.length === 0) return checks
  const selected = new Set(names)
  for (const { name, needs } of checks.toReversed()) {
    if (selected.has(name) && needs !== undefined) selected.add(needs)
  }
  return checks.filter(({ name }) => selected.has(name))
}
