/** The dashboard's read model: its tables, and how they are maintained. */
import { Context, Layer } from "effect"
import { type CompositeTables, compositeDay } from "#projections/capital-pressure/composite-day.ts"
import { type FeedTables, feed } from "#projections/capital-pressure/feed.ts"
import { type ObservationTables, observation } from "#projections/capital-pressure/observation.ts"
import { type PriceTables, price } from "#projections/capital-pressure/price.ts"
import { type ScheduleTables, scheduleRun } from "#projections/capital-pressure/schedule-run.ts"
import { type TargetTables, target } from "#projections/capital-pressure/target.ts"
import { type Blueprint, type ReadModel, readModel } from "#projections/read-model.ts"

export type CapitalPressureTables = ObservationTables &
  PriceTables &
  CompositeTables &
  FeedTables &
  ScheduleTables &
  TargetTables

export const blueprint: Blueprint<CapitalPressureTables> = {
  service: "capital-pressure",
  version: 2,
  part: "capital-pressure",
  projections: [observation, price, compositeDay, feed, scheduleRun, target],
}

export class CapitalPressureModel extends Context.Service<
  CapitalPressureModel,
  ReadModel<CapitalPressureTables>
>()("projections/CapitalPressureModel") {
  /** Follows the log for the lifetime of the layer. */
  static readonly layer = Layer.effect(this, readModel(blueprint))
}
