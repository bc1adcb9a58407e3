/**
 * A metric's values in one year: absent → real, or demo. Neither ever becomes the other.
 *
 * An unchanged value causes no event, and a value that is no longer published stays. Source:
 * decisions of document 3, dashboard storage and metric registry.
 */
import { demoMixed, lastOfDay, valueOn, wrongYear } from "#actors/capital-pressure/year.ts"
import { yearChart } from "#actors/capital-pressure/year-chart.ts"
import { decider } from "#actors/decider.ts"
import { generated } from "#events/capital-pressure/generated.ts"
import {
  MetricObserved,
  MetricRevised,
  ObservationEvent,
} from "#events/capital-pressure/observation.ts"
import { ObservationCommand } from "#schemas/capital-pressure/observation.ts"
import { Rejection } from "#schemas/capital-pressure/rejection.ts"

export const machine = yearChart<number, ObservationEvent>({
  id: "capital-pressure.observation",
  first: "MetricObserved",
  again: "MetricRevised",
  valueIn: ({ value }) => value,
  replaces: (event, value) => event.type === "MetricRevised" && event.previous === value,
})

export const Observation = decider({
  machine,
  version: 1,
  command: ObservationCommand,
  event: ObservationEvent,
  rejection: Rejection,
  propose: {
    ObserveMetric: ({ observations, demo }, context, state) => {
      // A command of the other kind must be rejected even if its values are already known.
      const is_other_kind = state.matches(demo ? "real" : "demo")
      return lastOfDay(observations).flatMap(({ ts, value }): ReadonlyArray<ObservationEvent> => {
        const previous = valueOn(context, ts)
        if (previous === undefined || is_other_kind) {
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
