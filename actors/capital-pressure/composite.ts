/**
 * The last computed composite of each business day of a year: absent → computed. A day that no
 * longer has a composite, because values were corrected, is withdrawn.
 *
 * Source: document 3 §1 A, backfill-composite; decisions of document 3, point in time.
 */
import { assign, setup } from "xstate"
import {
  empty_year,
  isOfYear,
  lastOfDay,
  valueOn,
  withDays,
  withoutDays,
  wrongYear,
  type Year,
} from "#actors/capital-pressure/year.ts"
import { decider } from "#actors/decider.ts"
import { CompositeEvent } from "#events/capital-pressure/composite.ts"
import { CompositeCommand, type CompositeDay } from "#schemas/capital-pressure/composite.ts"
import { Rejection } from "#schemas/capital-pressure/rejection.ts"

/**
 * The composite and the four tiers of each day in millionths, in base 36, separated by commas: in
 * decimal, a year would exceed the maximum snapshot size.
 */
export type CompositeContext = Year<string>

const millionth = 1e6
const base = 36

/**
 * Rounds to six decimals, without negative zero. Throws for NaN and infinity, so that they never
 * become events.
 */
const rounded = (z: number) => {
  if (!Number.isFinite(z)) throw new Error(`a composite of ${z}`)
  return Math.round(z * millionth) / millionth + 0
}

const roundedDay = ({ ts, z, tiers: [first, second, third, fourth] }: CompositeDay) => {
  const tier = (z: number | null) => (z === null ? null : rounded(z))
  return {
    ts,
    z: rounded(z),
    tiers: [tier(first), tier(second), tier(third), tier(fourth)],
  } as const satisfies CompositeDay
}

const digits = (value: number | null) =>
  value === null ? "" : Math.round(value * millionth).toString(base)

const packed = ({ z, tiers: [first, second, third, fourth] }: CompositeDay) =>
  `${digits(z)},${digits(first)},${digits(second)},${digits(third)},${digits(fourth)}`

export const machine = setup({
  types: { context: {} as CompositeContext, events: {} as CompositeEvent },
  guards: {
    is_news: ({ context, event }) =>
      event.type === "CompositeComputed" &&
      wrongYear(context, event.days) === undefined &&
      event.days.every((day) => valueOn(context, day.ts) !== packed(day)),
    is_known: ({ context, event }) =>
      event.type === "CompositeWithdrawn" &&
      event.days.every((ts) => valueOn(context, ts) !== undefined),
  },
  actions: {
    learn: assign(({ context, event }) =>
      event.type === "CompositeWithdrawn"
        ? withoutDays(context, event.days)
        : withDays(
            context,
            event.days.map((day) => [day.ts, packed(day)] as const),
          ),
    ),
  },
}).createMachine({
  id: "capital-pressure.composite",
  context: empty_year,
  initial: "absent",
  states: {
    absent: {
      on: { CompositeComputed: { guard: "is_news", target: "computed", actions: "learn" } },
    },
    computed: {
      on: {
        CompositeComputed: { guard: "is_news", actions: "learn" },
        CompositeWithdrawn: { guard: "is_known", actions: "learn" },
      },
    },
  },
})

export const Composite = decider({
  machine,
  version: 2,
  command: CompositeCommand,
  event: CompositeEvent,
  rejection: Rejection,
  propose: {
    RecordComposite: ({ days, withdrawn = [] }, context) => {
      const rounded_days = lastOfDay(days).map(roundedDay)
      const [first, ...more] = rounded_days.filter(
        (day) => valueOn(context, day.ts) !== packed(day),
      )
      const computed_days = new Set(rounded_days.map(({ ts }) => ts))
      const [none, ...others] = [...new Set(withdrawn)].filter(
        (ts) =>
          !computed_days.has(ts) && (valueOn(context, ts) !== undefined || !isOfYear(context, ts)),
      )
      // Without `make`: the days are already checked, and checking again takes a third of a
      // backfill.
      return [
        ...(first === undefined
          ? []
          : [{ type: "CompositeComputed" as const, days: [first, ...more] as const }]),
        ...(none === undefined
          ? []
          : [{ type: "CompositeWithdrawn" as const, days: [none, ...others] as const }]),
      ]
    },
  },
  reject: ({ context }, { days, withdrawn = [] }) => {
    const wrong = wrongYear(context, [...days, ...withdrawn.map((ts) => ({ ts }))])
    if (wrong === undefined) throw new Error("The composite rejects only other years.")
    return wrong
  },
})
