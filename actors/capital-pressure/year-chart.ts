/**
 * The chart of a year's values, day by day: absent → real, or demo. Neither ever becomes the other.
 *
 * Source: decisions of document 3, dashboard storage.
 */
import { and, assign, setup } from "xstate"
import { empty_year, isOfYear, valueOn, withDay, type Year } from "#actors/capital-pressure/year.ts"

interface DayEvent {
  readonly type: string
  readonly ts: string
  readonly demo?: true | undefined
}

/**
 * `first` and `again` are the types of a day's first event and of its later ones. `replaces` checks
 * that a later event names the value that it replaces.
 */
export const yearChart = <Value, Event extends DayEvent>({
  id,
  first,
  again,
  valueIn,
  replaces,
}: {
  readonly id: string
  readonly first: Event["type"]
  readonly again: Event["type"]
  readonly valueIn: (event: Event) => Value
  readonly replaces: (event: Event, value: Value | undefined) => boolean
}) => {
  // A chart receives only events of its own aggregate, which XState cannot express by a parameter.
  const own = (event: DayEvent) => event as Event
  const chart = setup({
    types: { context: {} as Year<Value>, events: {} as DayEvent },
    guards: {
      is_real: ({ event }) => event.demo === undefined,
      is_demo: ({ event }) => event.demo === true,
      is_new: ({ context, event }) =>
        isOfYear(context, event.ts) && valueOn(context, event.ts) === undefined,
      is_known: ({ context, event }) => replaces(own(event), valueOn(context, event.ts)),
    },
    actions: {
      learn: assign(({ context, event }) => withDay(context, event.ts, valueIn(own(event)))),
    },
  })
  const transitionsOf = (is_of_kind: "is_real" | "is_demo") =>
    ({
      on: {
        [first]: { guard: and([is_of_kind, "is_new"]), actions: "learn" },
        [again]: { guard: and([is_of_kind, "is_known"]), actions: "learn" },
      },
    }) as const
  return chart.createMachine({
    id,
    context: empty_year,
    initial: "absent",
    states: {
      absent: {
        on: {
          [first]: [
            { guard: "is_demo", target: "demo", actions: "learn" },
            { target: "real", actions: "learn" },
          ],
        },
      },
      real: transitionsOf("is_real"),
      demo: transitionsOf("is_demo"),
    },
  })
}
