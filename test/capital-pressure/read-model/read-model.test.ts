/** The dashboard's tables match every short history of events. */
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import SqliteFile from "better-sqlite3"
import { Effect, Layer, Struct } from "effect"
import type { CompositeEvent } from "#events/capital-pressure/composite.ts"
import type { FeedEvent } from "#events/capital-pressure/feed.ts"
import type { ObservationEvent } from "#events/capital-pressure/observation.ts"
import type { PriceEvent } from "#events/capital-pressure/price.ts"
import type { ScheduleEvent } from "#events/capital-pressure/schedule.ts"
import type { WatchlistEvent } from "#events/capital-pressure/watchlist.ts"
import type { Recorded } from "#events/log.ts"
import { blueprint } from "#projections/capital-pressure/blueprint.ts"
import { openDatabase, project } from "#projections/read-model.ts"
import type { CompositeDay } from "#schemas/capital-pressure/composite.ts"
import type { Message } from "#schemas/message.ts"
import { sqlite } from "#sqlite"
import { type Happening, happenings, type Kind } from "../../world/capital-pressure/happenings.ts"
import { histories } from "../../world/histories.ts"
import { temporaryFolder } from "../../world/programs/nats.ts"

/** Limits each exploration to a few seconds. */
const histories_max = 250

const committed_at = (i: number) => `2026-11-20T12:00:0${i}.000Z`

/** The two days of the test events, as days since 1970-01-01. */
const days: Readonly<Record<string, number>> = { "2026-01-02": 20_455, "2026-12-31": 20_818 }

const recorded = (position: number, stream: string, at: string, event: Message): Recorded => ({
  position,
  stream: `capital-pressure.${stream}`,
  hash: "",
  commit: {
    v: 1,
    actor: "test",
    at,
    events: [event],
    commands: ["c"],
    prev: "",
    snapshot: { machine: 1, value: "", context: {} },
  },
})

/**
 * A read model that applies one history after another, each to empty tables: opening a new one per
 * history takes ten times as long. Returns all tables except internal ones, with rows as JSON.
 */
const emptyModel = Effect.gen(function* () {
  const folder = yield* temporaryFolder
  const around = yield* Layer.build(sqlite(folder))
  const database = yield* Effect.provideContext(openDatabase(blueprint), around)
  const file = new SqliteFile(join(folder, `${blueprint.part}.v${blueprint.version}.sqlite`))
  yield* Effect.addFinalizer(() => Effect.sync(() => file.close()))
  const tables = Object.keys(Struct.omit(yield* database.dump, ["checkpoint"]))
  let position = 0
  return Effect.fnUntraced(function* (kind: Kind, history: ReadonlyArray<Message>) {
    file.exec(tables.map((table) => `DELETE FROM ${table};`).join(""))
    const stream = `${kind}.${happenings[kind].id}`
    const stretch = history.map((event, i) => recorded(++position, stream, committed_at(i), event))
    yield* project(database, blueprint, stretch)
    const dumped = Struct.omit(yield* database.dump, ["checkpoint"])
    return Object.fromEntries(Object.entries(dumped).filter(([, rows]) => rows.length > 0))
  })
})

type Tables = Readonly<Record<string, ReadonlyArray<object>>>

/** The last event of each key. */
const lastBy = <Event>(history: ReadonlyArray<Event>, keyOf: (event: Event) => string) =>
  [...Map.groupBy(history, keyOf).values()].flatMap((events) => events.at(-1) ?? [])

const last = <Type extends string>(history: ReadonlyArray<ScheduleEvent | FeedEvent>, type: Type) =>
  history.findLast((event) => event.type === type)

/** The expected tables, derived directly from the history; the events are of these kinds. */
const expected: Readonly<Record<Kind, (history: ReadonlyArray<Message>) => Tables>> = {
  observation: (events) => {
    const history = events as ReadonlyArray<ObservationEvent>
    return {
      capital_observation: lastBy(history, ({ ts }) => ts).map(({ ts, value }) => ({
        metric_id: "hy_spread",
        day: days[ts],
        value,
        first_value: history.find((event) => event.ts === ts)?.value,
      })),
      capital_revision: history.flatMap((event, i) => {
        if (event.type === "MetricObserved") return []
        const { ts, value, previous } = event
        const seen_at = committed_at(i)
        return [{ metric_id: "hy_spread", day: days[ts], value, previous, seen_at }]
      }),
    }
  },
  price: (events) => ({
    capital_price: lastBy(events as ReadonlyArray<PriceEvent>, ({ ts }) => ts).map(
      ({ ts, close, adjusted }) => ({ ticker: "XLV", day: days[ts], close, adjusted }),
    ),
  }),
  composite: (events) => {
    const found = new Map<string, CompositeDay>()
    for (const event of events as ReadonlyArray<CompositeEvent>) {
      if (event.type === "CompositeComputed") for (const day of event.days) found.set(day.ts, day)
      else for (const ts of event.days) found.delete(ts)
    }
    const rows = Array.from(
      found.values(),
      ({ ts, z, tiers: [tier_1, tier_2, tier_3, tier_4] }) => {
        return { day: days[ts], z, tier_1, tier_2, tier_3, tier_4 }
      },
    )
    return rows.length === 0 ? {} : { capital_composite: rows }
  },
  feed: (events) => {
    const history = events as ReadonlyArray<FeedEvent>
    const ingest = history.findLast((event) => event.type === "FeedIngested")
    const failure = history.findLast((event) => event.type === "FeedFailed")
    return {
      capital_feed: [
        {
          id: "prices",
          last_ingested_at: ingest?.at ?? null,
          last_error_at: failure?.at ?? null,
          last_error: history.at(-1) === failure ? failure?.detail : null,
          demo: ingest?.demo === true ? 1 : 0,
        },
      ],
    }
  },
  schedule: (events) => {
    const history = events as ReadonlyArray<ScheduleEvent>
    const failure = history.findLast((event) => event.type === "ScheduledRunFailed")
    return {
      capital_job: [
        {
          id: "daily_ingest",
          last_run_at: last(history, "ScheduledRunStarted")?.at ?? null,
          last_success_at: last(history, "ScheduledRunEnded")?.at ?? null,
          last_error_at: failure?.at ?? null,
          last_error: failure?.detail ?? null,
        },
      ],
    }
  },
  watchlist: (events) => {
    const set = (events as ReadonlyArray<WatchlistEvent>).at(-1)
    return {
      capital_target: (set?.targets ?? []).map((target) => ({
        ...target,
        demo: set?.demo === true ? 1 : 0,
      })),
    }
  },
}

function* walks({ machine, events, length_max }: Happening) {
  let walked = 0
  for (const { history } of histories(machine, events, length_max)) {
    if (walked++ === histories_max) return
    yield history
  }
}

const asDumped = (tables: Tables) =>
  Object.fromEntries(
    Object.entries(tables)
      .filter(([, rows]) => rows.length > 0)
      .map(([table, rows]) => [table, rows.map((row) => JSON.stringify(row)).sort()]),
  )

describe("the rows of each aggregate", () => {
  for (const kind of Object.keys(happenings) as Array<Kind>) {
    it.effect(
      `${kind}: are what the events say after each short history`,
      () =>
        Effect.gen(function* () {
          let walked = 0
          const model = yield* emptyModel
          for (const history of walks(happenings[kind])) {
            const types = history.map(({ type }) => type).join(", ")
            const rows = yield* model(kind, history)
            assert.deepEqual(rows, asDumped(expected[kind](history)), types)
            walked++
          }
          assert.isAbove(walked, 10)
        }),
      60_000,
    )
  }

  it.effect("keep the first published value after every revision", () =>
    Effect.gen(function* () {
      const { events } = happenings.observation
      const [observed, , revised, back] = events
      const history = [observed, revised, back, revised].filter((event) => event !== undefined)
      const model = yield* emptyModel
      const { capital_observation: rows } = yield* model("observation", history)
      const row = { metric_id: "hy_spread", day: days["2026-01-02"], value: 3.5, first_value: 3.25 }
      assert.deepEqual(rows, [JSON.stringify(row)])
    }),
  )
})
