/** The dashboard's deciders as the tables of tests read them: a refusal is named by its tag. */
import { Result } from "effect"
import type { Decider } from "#actors/decider.ts"
import { dateOf, dayOf } from "#schemas/capital-pressure/day.ts"
import type { Rejection } from "#schemas/capital-pressure/rejection.ts"

export const coded = <Command, Event, State>(
  decider: Decider<Command, Event, State, Rejection>,
): Decider<Command, Event, State, { readonly code: Rejection["_tag"] }> => ({
  ...decider,
  // Nobody decodes a refusal here.
  rejection: decider.rejection as never,
  decide: (state, command) =>
    Result.mapError(decider.decide(state, command), ({ _tag: code }) => ({ code })),
})

/** Every day of a leap year. */
export const leap_year: ReadonlyArray<string> = Array.from({ length: 366 }, (_, i) =>
  dateOf(dayOf("2024-01-01") + i),
)

/** Bytes of a value as JSON. */
export const bytesOf = (value: unknown) => new TextEncoder().encode(JSON.stringify(value)).length

/** What a command makes happen at first; it must not be refused. */
export const decided = <Command, Event, State>(
  { decide, initialState }: Decider<Command, Event, State, Rejection>,
  command: Command,
): ReadonlyArray<Event> => Result.getOrThrow(decide(initialState, command))
