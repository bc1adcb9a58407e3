/** Turns: serializes effects that need the same keys. */
import { Effect, Semaphore } from "effect"

interface Entry {
  readonly turn: Semaphore.Semaphore
  waiting: number
}

/** Runs effects that share a key one after another, and all others concurrently. */
export const makeTurns = () => {
  const entries = new Map<string, Entry>()

  const inOne = <A, E, R>(key: string, effect: Effect.Effect<A, E, R>) =>
    Effect.suspend(() => {
      const entry = entries.get(key) ?? { turn: Semaphore.makeUnsafe(1), waiting: 0 }
      entries.set(key, entry)
      entry.waiting++
      const leave = Effect.sync(() => {
        if (--entry.waiting === 0) entries.delete(key)
      })
      return Effect.ensuring(entry.turn.withPermit(effect), leave)
    })

  /** Acquires keys in sorted order, so that two effects never deadlock. */
  return <A, E, R>(keys: ReadonlyArray<string>, effect: Effect.Effect<A, E, R>) =>
    [...new Set(keys)].sort().reduceRight((inner, key) => inOne(key, inner), effect)
}
