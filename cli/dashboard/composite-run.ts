/**
 * Computes the composite of each business day from the dashboard's file and records the differences
 * to the stored ones in the log. Withdraws days that lost their composite through corrected values.
 *
 * Source: document 3 §1 A, backfill-composite; decisions of document 3, point in time.
 */
import { Clock, DateTime, Effect, Schema } from "effect"
import { v7 } from "uuid"
import { Composite } from "#actors/capital-pressure/composite.ts"
import { address, Commands } from "#actors/commands.ts"
import { loadComposite, loadObservations, type Vintage } from "#adapters/capital-pressure/store.ts"
import { DashboardFile, waitForFile } from "#cli/dashboard/dashboard-file.ts"
import { Log } from "#events/log.ts"
import { compositeHistory } from "#projections/capital-pressure/composite.ts"
import type { CompositeSeries } from "#projections/capital-pressure/store.ts"
import type { CompositeDay } from "#schemas/capital-pressure/composite.ts"
import { dateOf, dayAt, yearOf, yearsBefore } from "#schemas/capital-pressure/day.ts"

/** Default range in years: market facts, A5.1. */
const years_default = 20

/** Years per write: the file applies one batch while the next is decided. */
const years_of_write = 10

/** Precision of a stored composite (schemas/capital-pressure/composite.ts). */
const millionth = 1e6

/** Days since 1970-01-01, in UTC. */
export const today = Effect.map(Clock.currentTimeMillis, dayAt)

/** The dashboard's file is missing or invalid. */
export class FileUnreadable extends Schema.TaggedError<FileUnreadable>()("FileUnreadable", {
  message: Schema.String,
}) {}

export interface BackfillOptions {
  /** The first day; undefined: 20 years back. */
  readonly since?: number | undefined
  /** "first": uses the first published value, ignoring revisions. */
  readonly vintage: Vintage
  readonly onProgress?: (done: number, total: number) => void
}

export interface BackfillReport {
  /** Days with a composite, and the new or changed ones among them. */
  readonly days: number
  readonly changed: number
  /** Days whose composite was withdrawn. */
  readonly withdrawn: number
  readonly first: string | null
  readonly last: string | null
}

/** Computes and stores the differences. Idempotent. */
export const runBackfill = Effect.fnUntraced(function* (options: BackfillOptions) {
  const { since, vintage, onProgress } = options
  const log = yield* Log
  const { path } = yield* DashboardFile
  yield* waitForFile(yield* log.head("capital-pressure"))
  const now = yield* today
  const { observations, stored } = yield* Effect.try({
    try: () => ({
      observations: loadObservations(path, { vintage }),
      stored: loadComposite(path),
    }),
    catch: (cause) => new FileUnreadable({ message: `${path} cannot be read: ${String(cause)}` }),
  })
  const from = since ?? yearsBefore(now, years_default)
  const computed = compositeHistory(observations, from, now, onProgress)
  const changes = changedDays(computed, stored)
  const withdrawn = withdrawnDays(computed, stored, from, now)
  yield* record(changes, withdrawn)
  const dateAt = (at: number) => {
    const day = computed.days.at(at)
    return day === undefined ? null : dateOf(day)
  }
  const report: BackfillReport = {
    days: computed.days.length,
    changed: changes.length,
    withdrawn: withdrawn.length,
    first: dateAt(0),
    last: dateAt(-1),
  }
  return report
})

/** Compares at stored precision; NaN, a tier without data, equals NaN. */
const isSame = (one = Number.NaN, other = Number.NaN) =>
  Number.isNaN(one)
    ? Number.isNaN(other)
    : Math.round(one * millionth) === Math.round(other * millionth)

const changedDays = (computed: CompositeSeries, stored: CompositeSeries) => {
  const index_by_day = new Map(Array.from(stored.days, (day, at) => [day, at]))
  const changed: Array<CompositeDay> = []
  for (const [at, day] of computed.days.entries()) {
    const before = index_by_day.get(day) ?? -1
    const is_known =
      isSame(computed.z[at], stored.z[before]) &&
      computed.tiers.every((tier, index) => isSame(tier[at], stored.tiers[index]?.[before]))
    if (!is_known) changed.push(dayOfSeries(computed, at))
  }
  return changed
}

/** Stored days in the range that have no composite now. */
const withdrawnDays = (
  computed: CompositeSeries,
  stored: CompositeSeries,
  from: number,
  to: number,
) => {
  const has_one = new Set(computed.days)
  return Array.from(stored.days)
    .filter((day) => from <= day && day <= to && !has_one.has(day))
    .map(dateOf)
}

const dayOfSeries = ({ days, z, tiers }: CompositeSeries, at: number): CompositeDay => {
  const tier = (series: Float64Array) => {
    const value = series[at] ?? Number.NaN
    return Number.isNaN(value) ? null : value
  }
  const [first, second, third, fourth] = tiers
  return {
    ts: dateOf(days[at] ?? 0),
    z: z[at] ?? Number.NaN,
    tiers: [tier(first), tier(second), tier(third), tier(fourth)],
  }
}

/** Records the changes year by year and waits until the file contains them. */
const record = Effect.fnUntraced(function* (
  changes: ReadonlyArray<CompositeDay>,
  withdrawn: ReadonlyArray<string>,
) {
  const commands = yield* Commands
  const changed = Map.groupBy(changes, ({ ts }) => yearOf(ts))
  const gone = Map.groupBy(withdrawn, yearOf)
  const addressed = Array.from(new Set([...changed.keys(), ...gone.keys()]), (year) => {
    const [days, none] = [changed.get(year) ?? [], gone.get(year)]
    // Not `make`: the events are validated anyway, and validation takes half of a backfill's time.
    const command = { type: "RecordComposite" as const, days, ...(none && { withdrawn: none }) }
    return address(Composite, year, command)
  })
  const at = DateTime.formatIso(DateTime.makeUnsafe(yield* Clock.currentTimeMillis))
  const correlation_id = v7()
  let position = 0
  for (let sent = 0; sent < addressed.length; sent += years_of_write) {
    const origin = { command_id: v7(), actor: "process:backfill-composite", at, correlation_id }
    position = yield* commands.send(origin, ...addressed.slice(sent, sent + years_of_write))
  }
  yield* waitForFile(position)
})
