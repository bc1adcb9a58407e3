/**
 * Why parts of this process cannot do their work, each as an effect that answers nothing while
 * they can. `/readyz` shows them behind the names of the services that they concern.
 * Source: DECISIONS, "health"; docs/decisions/0175.
 */
import { Clock, Effect } from "effect"
import { CommandPath, failing_ms_max } from "#actors/health/command-path.ts"
import type { BusStanding } from "#bus"
import { NatsServer } from "#bus"
import { Log } from "#events/log.ts"
import { type Follower, standstill } from "#projections/health/follower.ts"
import { PublisherStanding } from "#projections/health/publisher-standing.ts"
import type { ReadModel } from "#projections/read-model.ts"

export type Trouble = Effect.Effect<string | undefined>

/** The first of these that has something to report; all are asked at the same time. */
export const firstOf = (...troubles: ReadonlyArray<Trouble | undefined>): Trouble =>
  Effect.map(
    Effect.forEach(troubles, (trouble) => trouble ?? Effect.undefined, {
      concurrency: "unbounded",
    }),
    (found) => found.find((why) => why !== undefined),
  )

/** What commands of this process, or a probe where there are none, say of the path to the log. */
const measured = Effect.gen(function* () {
  const { ask } = yield* CommandPath
  return Effect.gen(function* () {
    const { failing_ms, detail } = yield* ask
    if (failing_ms === undefined) return undefined
    const for_ms = (yield* Clock.currentTimeMillis) - failing_ms
    if (for_ms <= failing_ms_max) return undefined
    const seconds = Math.round(for_ms / 1000)
    return detail === undefined
      ? `none was answered for ${seconds} s`
      : `they fail for ${seconds} s: ${detail}`
  })
})

/**
 * Why no command of this process is committed. Causes that are known come first, so that a line
 * names them; what is measured covers unknown causes.
 */
export const commandTrouble = Effect.fnUntraced(function* ({ trouble }: BusStanding) {
  const server = yield* NatsServer
  const refused = (why: string | undefined) => why && `takes no commands: ${why}`
  const known: ReadonlyArray<Trouble> = [Effect.sync(() => refused(server.trouble())), trouble]
  const probed = Effect.map(yield* measured, refused)
  return firstOf(...known, probed)
})

/** Why what follows the log stands, under the name that operators know it by. */
const stands = Effect.fnUntraced(function* (name: string, follower: Follower) {
  const log = yield* Log
  const still = Effect.provideService(standstill(follower), Log, log)
  return Effect.map(still, (found) => found && `${name} stands ${found}`)
})

/** Why a read model does not show what is in the log; undefined where nothing is missing. */
export const modelTrouble = (
  name: string,
  part: string,
  { position, waits, is_kept }: Pick<ReadModel<unknown>, "position" | "waits" | "is_kept">,
) =>
  is_kept === false
    ? Effect.succeed<Trouble>(Effect.undefined)
    : stands(`the ${name} read model`, { part, position, waits })

/** Why the publisher of this process stands; undefined where another process publishes. */
export const publisherTrouble = Effect.gen(function* () {
  const standing = yield* PublisherStanding
  return yield* stands("the publisher", {
    part: "",
    position: Effect.sync(() => standing.position),
    waits: () => standing.why,
  })
})
