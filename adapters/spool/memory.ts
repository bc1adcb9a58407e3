/** A spool in memory: for tests, and as a fallback if the disk is not writable. */
import { Effect, Metric } from "effect"
import { v7 } from "uuid"
import type { Spool, Spooled } from "#actors/spool.ts"
import { counter } from "#schemas/metric.ts"

/** Maximum facts in memory: several megabytes. */
export const facts_max = 10_000

/** A spool that starts empty and is lost with the process. `name` appears in logs. */
export const spoolMemory = <Fact>(name = "in memory"): Effect.Effect<Spool<Fact>> =>
  Effect.sync(() => {
    let facts: Array<Spooled<Fact>> = []
    let cursor = 0
    const dropping = dropCounter(name)
    return {
      epoch: v7(),
      add: (fact) =>
        Effect.suspend(() => {
          if (facts.length >= facts_max) return dropping.drop
          facts.push({ cursor: ++cursor, fact })
          return dropping.end
        }),
      scan: (after, max) =>
        Effect.sync(() => facts.filter((spooled) => spooled.cursor > after).slice(0, max)),
      acknowledge: (last) =>
        Effect.sync(() => {
          facts = facts.filter((spooled) => spooled.cursor > last)
        }),
    }
  })

const dropped_counter = counter(
  "almanac_spool_dropped_total",
  "Facts dropped because their spool was full.",
  {},
)

/** Logs when a spool starts to drop facts, and later how many were dropped. */
export const dropCounter = (name: string) => {
  let dropped = 0
  return {
    drop: Effect.suspend(() =>
      Effect.andThen(
        Metric.update(dropped_counter, 1),
        dropped++ > 0
          ? Effect.void
          : Effect.logError(`The spool ${name} is full: new facts are dropped until it has room.`),
      ),
    ),
    end: Effect.suspend(() => {
      if (dropped === 0) return Effect.void
      const count = dropped
      dropped = 0
      return Effect.logError(`The spool ${name} has room again: ${count} facts were dropped.`)
    }),
  }
}
