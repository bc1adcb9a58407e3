/** Checks of a deployment, each alone: one that fails, throws or hangs hides no other. */
import { Cause, Effect, Predicate, Schema } from "effect"
import { type Finding, fail } from "#adapters/doctor/finding.ts"
import { causeText } from "#schemas/cause-text.ts"

export interface Check<R = never> {
  /** As `--only` takes it: the word of its findings, with hyphens. */
  readonly name: string
  /** The check without which this one has nothing to look at. */
  readonly needs?: string
  readonly look: Effect.Effect<Finding | ReadonlyArray<Finding>, unknown, R>
}

/** A check that is not done within this is a finding itself, in milliseconds. */
const check_ms_max = 20_000

/** The word that findings of a check have. */
const wordOf = (name: string) => name.replaceAll("-", " ")

/** What failed, in its own words: failures of ours have a detail. */
const whyOf = (cause: Cause.Cause<unknown>) => {
  const failure = Cause.squash(cause)
  return Predicate.hasProperty(failure, "detail") && typeof failure.detail === "string"
    ? failure.detail
    : causeText(failure) || "It does not answer."
}

/** Runs one check; whatever becomes of it is a finding. */
const runCheck = <R>(
  { name, look }: Check<R>,
  ms_max = check_ms_max,
): Effect.Effect<ReadonlyArray<Finding>, never, R> =>
  Effect.suspend(() => look).pipe(
    Effect.map((found) => [found].flat()),
    Effect.timeoutOrElse({
      duration: ms_max,
      orElse: () =>
        Effect.succeed([fail(wordOf(name), `It does not answer within ${ms_max / 1000} s.`)]),
    }),
    Effect.catchCause((cause) => Effect.succeed([fail(wordOf(name), whyOf(cause))])),
  )

/** Runs all of them, one after the other. */
export const runChecks = <R>(checks: ReadonlyArray<Check<R>>) =>
  Effect.map(
    Effect.forEach(checks, (check) => runCheck(check)),
    (found) => found.flat(),
  )

/** A check that returns a promise. */
export const promised = (
  name: string,
  look: () => Promise<Finding | ReadonlyArray<Finding>>,
): Check => ({ name, look: Effect.tryPromise({ try: look, catch: (cause) => cause }) })

/** Names that no check has; the message says which there are. */
export class UnknownCheck extends Schema.TaggedError<UnknownCheck>()("UnknownCheck", {
  message: Schema.String,
}) {}

/** The checks of these names, with those that they need; without names, all. */
export const chosen = <R>(
  checks: ReadonlyArray<Check<R>>,
  names: ReadonlyArray<string>,
): ReadonlyArray<Check<R>> => {
  if (names.length === 0) return checks
  const wanted = new Set(names)
  for (const { name, needs } of checks.toReversed()) {
    if (wanted.has(name) && needs !== undefined) wanted.add(needs)
  }
  return checks.filter(({ name }) => wanted.has(name))
}
