/** What a process says of its services and roles when something they stand on is away. */
import { Effect } from "effect"
import type { BusStanding } from "#adapters/bus-standing.ts"

type Said = Effect.Effect<string | undefined>

/** What the first says, or what the other does where it says nothing. */
export const orElse = (first: Said, other: Said): Said =>
  Effect.flatMap(first, (said) => (said === undefined ? other : Effect.succeed(said)))

/** Beside what else is said of a service: that none of its commands is taken now, if that is so. */
export const withCommands = (note: Said | undefined, { trouble }: BusStanding): Said =>
  Effect.zipWith(note ?? Effect.undefined, trouble, (said, why) => {
    const away = why && "commands fail: there is no connection to the bus"
    const all = [said, away].filter((one) => one !== undefined)
    return all.length === 0 ? undefined : all.join("; ")
  })
