/**
 * A metric's values in one year: absent → real, or demo. Neither ever becomes the other.
 *
 * What a publisher tells again as it was is no event, and what it no longer tells stays.
 * Source: decisions of document 3, dashboard storage and metric registry.
 */
import { and, assign, setup } from "xstate"
import {
  demoMixed,
  isOfYear,
  known,
  lastOfDay,
  no_year,
  withDay,
  wrongYear,
  type Year,
} from "#actors/capital-pressure/year.ts"
import { decider } from "#actors/decider.ts"
import { generated } from "#events/capital-pressure/generated.ts"
import {
  MetricObserved,
  MetricRevised,
  ObservationEvent,
} from "#events/capital-pressure/observation.ts"
import { ObservationCommand } from "#schemas/capital-pressure/observation.ts"
import { Rejection } from "#schemas/capital-pressure/rejection.ts"

/** The value of each day. */
export type ObservationContext = Year<number>

const chart = setup({
  types: { context: {} as ObservationContext, events: {} as ObservationEvent },
  guards: {
    is_real: ({ event }) => event.demo === undefined,
    is_demo: ({ event }) => event.demo === true,
    is_new: ({ context, event }) =>
      isOfYear(context, event.ts) && known(context, event.ts) === undefined,
    is_known: ({ context, event }) =>
      event.type === "MetricRevised" && known(context, event.ts) === event.previous,
  },
  actions: {
    learn: assign(({ context, event }) => withDay(context, event.ts, event.value)),
  },
})

const kept = (is_of_kind: "is_real" | "is_demo") =>
  ({
    on: {
      MetricObserved: { guard: and([is_of_kind, "is_new"]), actions: "learn" },
      MetricRevised: { guard: and([is_of_kind, "is_known"]), actions: "learn" },
    },
  }) as const

export const machine = chart.createMachine({
  id: "capital-pressure.observation",
  context: no_year,
  initial: "absent",
  states: {
    absent: {
      on: {
        MetricObserved: [
          { guard: "is_demo", target: "demo", actions: "learn" },
          { target: "real", actions: "learn" },
        ],
      },
    },
    real: kept("is_real"),
    demo: kept("is_demo"),
  },
})

export const Observation = decider({
  machine,
  version: 1,
  command: ObservationCommand,
  event: ObservationEvent,
  rejection: Rejection,
  propose: {
    ObserveMetric: ({ observations, demo }, context, state) => {
      // What is refused is refused, even where it tells nothing new.
      const is_other = state.matches(demo ? "real" : "demo")
      return lastOfDay(observations).flatMap(({ ts, value }): ReadonlyArray<ObservationEvent> => {
        const previous = known(context, ts)
        if (previous === undefined || is_other) {
          return [MetricObserved.make({ ts, value, ...generated(demo) })]
        }
        if (previous === value) return []
        return [MetricRevised.make({ ts, value, previous, ...generated(demo) })]
      })
    },
  },
  reject: ({ context }, { observations, demo }) =>
    wrongYear(context, observations) ?? demoMixed(demo),
})
