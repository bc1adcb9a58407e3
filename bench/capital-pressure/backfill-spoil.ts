/**
 * Changes the recorded composite of each day, so that the next backfill stores all of them again.
 */
import { NodeRuntime } from "@effect/platform-node"
import { Clock, DateTime, Effect } from "effect"
import { v7 } from "uuid"
import { Composite } from "#actors/capital-pressure/composite.ts"
import { address, Commands } from "#actors/commands.ts"
import { loadComposite } from "#adapters/capital-pressure/store.ts"
import { readSettings } from "#adapters/settings.ts"
import { DashboardFile, waitForFile } from "#cli/dashboard/dashboard-file.ts"
import { capitalSession } from "#cli/dashboard/session.ts"
import { RecordComposite } from "#schemas/capital-pressure/composite.ts"
import { dateOf, yearOf } from "#schemas/capital-pressure/day.ts"

/** The offset of each value; a recomputed value never matches it. */
const shift = 1

const spoil = Effect.gen(function* () {
  const { path } = yield* DashboardFile
  const commands = yield* Commands
  const { days, z, tiers } = loadComposite(path)
  const moved = Array.from(days, (day, at) => {
    const tier = (values: Float64Array) => (Number.isNaN(values[at]) ? null : (values[at] ?? null))
    const [first, second, third, fourth] = tiers
    return {
      ts: dateOf(day),
      z: (z[at] ?? 0) + shift,
      tiers: [tier(first), tier(second), tier(third), tier(fourth)] as const,
    }
  })
  const years = Map.groupBy(moved, ({ ts }) => yearOf(ts))
  const at = DateTime.formatIso(DateTime.makeUnsafe(yield* Clock.currentTimeMillis))
  const origin = { command_id: v7(), actor: "bench", at, correlation_id: v7() }
  const commands_sent = Array.from(years, ([year, days]) =>
    address(Composite, year, RecordComposite.make({ days })),
  )
  yield* waitForFile(yield* commands.send(origin, ...commands_sent))
})

const { settings } = await Effect.runPromise(
  readSettings({ config: "", set: [], env: process.env }),
)
NodeRuntime.runMain(Effect.provide(spoil, capitalSession(settings)))
