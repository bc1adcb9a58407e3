/** The invariants of a webhook simulation. */
import { isFor } from "#actors/system/webhooks/delivery.ts"
import type { Recorded } from "#events/log.ts"
import type { CloudEvent } from "#schemas/cloud-event.ts"
import type { Subscriber } from "./world.ts"

/** The dead letters of a webhook according to the log, with their number of attempts. */
export const lettersOf = (commits: ReadonlyArray<Recorded>, id: string) => {
  const letters = new Map<number, number>()
  for (const { stream, commit } of commits) {
    if (stream !== `system.webhook.${id}`) continue
    for (const event of commit.events) {
      // The simulation's own log.
      const { letters: given = [] } = event as {
        letters?: ReadonlyArray<{ sequence: number; attempts: number }>
      }
      for (const { sequence, attempts } of given) letters.set(sequence, attempts)
    }
  }
  return letters
}

export type Letters = ReadonlyMap<number, number>

/** The events that a subscriber should have received but has not. */
export const missingOf = ({ received, ...webhook }: Subscriber, all: ReadonlyArray<CloudEvent>) =>
  all.flatMap((event, n) => (isFor(webhook, event) && !received.has(n + 1) ? [n + 1] : []))

const disorderOf = (
  { id, received }: Subscriber,
  all: ReadonlyArray<CloudEvent>,
  letters: Letters,
) => {
  const lasts = new Map<string, number>()
  for (const sequence of received.keys()) {
    if (letters.has(sequence)) continue
    const event = all[sequence - 1]
    const key = `${event?.source} ${event?.subject}`
    const before = lasts.get(key) ?? 0
    if (before > sequence) return `${id} got ${sequence} of ${key} after ${before}`
    lasts.set(key, sequence)
  }
  return undefined
}

export const lawsBroken = (
  subscribers: ReadonlyArray<Subscriber>,
  all: ReadonlyArray<CloudEvent>,
  events: {
    readonly letters: ReadonlyMap<string, Letters>
    /** Open sequences, according to the cursors. */
    readonly waiting: ReadonlyMap<string, ReadonlySet<number>>
  },
) => {
  for (const subscriber of subscribers) {
    const { id, received, refused } = subscriber
    const letters = events.letters.get(id) ?? new Map()
    const foreign = [...received.keys()].find((n) => {
      const event = all[n - 1]
      return event === undefined || !isFor(subscriber, event)
    })
    if (foreign !== undefined) return `${id} got ${foreign}, which it must not`
    const open = events.waiting.get(id)
    const lost = missingOf(subscriber, all).find((n) => !letters.has(n) && !open?.has(n))
    if (lost !== undefined) return `${id} has lost ${lost}: it is neither open nor given up`
    const early = [...letters.keys()].find((n) => !refused.has(all[n - 1]?.subject ?? ""))
    if (early !== undefined) return `${id} gave ${early} up, which was never refused`
    const disorder = disorderOf(subscriber, all, letters)
    if (disorder !== undefined) return disorder
  }
  return undefined
}

/**
 * A stuck subject blocks no other: events that are not refused arrive long before it is given up.
 */
export const heldUp = (subscribers: ReadonlyArray<Subscriber>, all: ReadonlyArray<CloudEvent>) =>
  subscribers.flatMap((subscriber) =>
    missingOf(subscriber, all)
      .filter((n) => !subscriber.refused.has(all[n - 1]?.subject ?? ""))
      .map((n) => `${subscriber.id} still waits for ${n}`),
  )[0]
