/**
 * Every value of every metric, current and as first published.
 *
 * Source: decisions of document 3, dashboard storage.
 */
import { sql } from "kysely"
import { ObservationEvent } from "#events/capital-pressure/observation.ts"
import { upsert } from "#projections/capital-pressure/upsert.ts"
import { projection } from "#projections/projection.ts"
import { statement } from "#projections/statement.ts"
import { dayOf } from "#schemas/capital-pressure/day.ts"
import { partsOf } from "#schemas/capital-pressure/observation.ts"

export interface ObservationTables {
  readonly capital_observation: {
    readonly metric_id: string
    /** Days since 1970-01-01. */
    readonly day: number
    readonly value: number
    /** The value first published: revisions do not change it. */
    readonly first_value: number
  }
  /** All revisions, in order of arrival. */
  readonly capital_revision: {
    readonly metric_id: string
    readonly day: number
    readonly value: number
    readonly previous: number
    /** RFC 3339 in UTC. */
    readonly seen_at: string
  }
}

const observe = upsert<ObservationTables["capital_observation"]>("capital_observation")({
  keys: ["metric_id", "day"],
  sets: ["value"],
  first: ["first_value"],
})

const write = statement<ObservationTables>()

const revise = write<Omit<ObservationTables["capital_observation"], "first_value">>(
  (db, { metric_id, day, value }) =>
    db
      .updateTable("capital_observation")
      .set({ value })
      .where("metric_id", "=", metric_id)
      .where("day", "=", day),
)

const keepRevision = write<ObservationTables["capital_revision"]>(
  (db, { metric_id, day, value, previous, seen_at }) =>
    db.insertInto("capital_revision").values({ metric_id, day, value, previous, seen_at }),
)

export const observation = projection<ObservationTables, ObservationEvent>({
  part: "capital-pressure.observation",
  event: ObservationEvent,
  create: ({ schema }) => [
    schema
      .createTable("capital_observation")
      .addColumn("metric_id", "text", (column) => column.notNull())
      .addColumn("day", "integer", (column) => column.notNull())
      .addColumn("value", "real", (column) => column.notNull())
      .addColumn("first_value", "real", (column) => column.notNull())
      .addPrimaryKeyConstraint("capital_observation_key", ["metric_id", "day"])
      .modifyEnd(sql`without rowid`),
    schema
      .createTable("capital_revision")
      .addColumn("metric_id", "text", (column) => column.notNull())
      .addColumn("day", "integer", (column) => column.notNull())
      .addColumn("value", "real", (column) => column.notNull())
      .addColumn("previous", "real", (column) => column.notNull())
      .addColumn("seen_at", "text", (column) => column.notNull()),
  ],
  project: (event, { id, commit: { at: seen_at } }) => {
    const { metric_id } = partsOf(id)
    const { ts, value } = event
    const day = dayOf(ts)
    if (event.type === "MetricObserved") {
      return [observe({ metric_id, day, value, first_value: value })]
    }
    const { previous } = event
    return [
      revise({ metric_id, day, value }),
      keepRevision({ metric_id, day, value, previous, seen_at }),
    ]
  },
})
