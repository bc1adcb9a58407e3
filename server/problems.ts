/**
 * Problems of parts of this process. Each is an effect that returns the reason, or undefined while
 * the part works. `/readyz` lists them after the names of the affected services.
 * Source: DECISIONS, "health"; docs/decisions/0175.
 */
import { Clock, Effect } from "effect"
import { CommandPath, failing_ms_max } from "#actors/health/command-path.ts"
import type { BusAvailability } from "#bus"
import { NatsServer } from "#bus"
import { Log } from "#events/log.ts"
import { type Follower, standstill } from "#projections/health/follower.ts"
import { PublisherStatus } from "#projections/health/publisher-status.ts"
import type { ReadModel } from "#projections/read-model.ts"

export type Problem = Effect.Effect<string | undefined>

/** The first problem that is present; all are checked concurrently. */
export const firstOf = (...problems: ReadonlyArray<Problem | undefined>): Problem =>
  Effect.map(
    Effect.forEach(problems, (problem) => problem ?? Effect.undefined, {
      concurrency: "unbounded",
    }),
    (found) => found.find((why) => why !== undefined),
  )

/** The problem of the command path, by this process's commands or by a probe. */
const measuredProblem = Effect.gen(function* () {
  const { check } = yield* CommandPath
  return Effect.gen(function* () {
    const { failing_ms, detail } = yield* check
    if (failing_ms === undefined) return undefined
    const for_ms = (yield* Clock.currentTimeMillis) - failing_ms
    if (for_ms <= failing_ms_max) return undefined
    const seconds = Math.round(for_ms / 1000)
    return detail === undefined
      ? `no command has received a response for ${seconds} s`
      : `commands have failed for ${seconds} s: ${detail}`
  })
})

/**
 * Why this process cannot commit commands. Known causes come first, so that the message names them;
 * the measurement covers unknown causes.
 */
export const commandProblem = Effect.fnUntraced(function* ({ problem }: BusAvailability) {
  const server = yield* NatsServer
  const refused = (why: string | undefined) => why && `accepts no commands: ${why}`
  const known: ReadonlyArray<Problem> = [Effect.sync(() => refused(server.problem())), problem]
  const probed = Effect.map(yield* measuredProblem, refused)
  return firstOf(...known, probed)
})

/** Why a follower of the log is stuck, with the name that operators know. */
const stuckProblem = Effect.fnUntraced(function* (name: string, follower: Follower) {
  const log = yield* Log
  const still = Effect.provideService(standstill(follower), Log, log)
  return Effect.map(still, (found) => found && `${name} has stopped ${found}`)
})

/** Why a read model is behind the log; undefined if it is current. */
export const modelProblem = (
  name: string,
  part: string,
  {
    position,
    waits,
    is_maintained,
  }: Pick<ReadModel<unknown>, "position" | "waits" | "is_maintained">,
) =>
  is_maintained === false
    ? Effect.succeed<Problem>(Effect.undefined)
    : stuckProblem(`the ${name} read model`, { part, position, waits })

/** Why this process's publisher is stuck; undefined if another process publishes. */
export const publisherProblem = Effect.gen(function* () {
  const status = yield* PublisherStatus
  return yield* stuckProblem("the publisher", {
    part: "",
    position: Effect.sync(() => status.position),
    waits: () => status.why,
  })
})
