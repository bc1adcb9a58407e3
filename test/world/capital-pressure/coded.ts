/** The dashboard's deciders in the form for state tables: a rejection's code is its tag. */
import { Result } from "effect"
import type { Decider } from "#actors/decider.ts"
import { dateOf, dayOf } from "#schemas/capital-pressure/day.ts"
import type { Rejection } from "#schemas/capital-pressure/rejection.ts"

export const coded = <Command, Event, State>(
  decider: Decider<Command, Event, State, Rejection>,
): Decider<Command, Event, State, { readonly code: Rejection["_tag"] }> => ({
  ...decider,
  // These tests decode no rejection.
  rejection: decider.rejection as never,
  decide: (state, command) =>
    Result.mapError(decider.decide(state, command), ({ _tag: code }) => ({ code })),
})

/** Every day of a leap year. */
export const leap_year: ReadonlyArray<string> = Array.from({ length: 366 }, (_, i) =>
  dateOf(dayOf("2024-01-01") + i),
)

/** Size of a value as JSON in bytes. */
export const bytesOf = (value: unknown) => new TextEncoder().encode(JSON.stringify(value)).length

/** The events of a command in the initial state; it must not be rejected. */
export const decided = <Command, Event, State>(
  { decide, initialState }: Decider<Command, Event, State, Rejection>,
  command: Command,
): ReadonlyArray<Event> => Result.getOrThrow(decide(initialState, command))
