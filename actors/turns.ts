/** Turns: who needs the same thing waits for the one before. */
import { Effect, Semaphore } from "effect"

interface Entry {
  readonly turn: Semaphore.Semaphore
  waiting: number
}

/** Runs effects one after another for each key they name, and all others at once. */
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

  /** In the order of the keys, so that two that want the same ones never wait for each other. */
  return <A, E, R>(keys: ReadonlyArray<string>, effect: Effect.Effect<A, E, R>) =>
    [...new Set(keys)].sort().reduceRight((inner, key) => inOne(key, inner), effect)
}
