/**
 * The dashboard behind the gateway, over real HTTP and with a file that the test writes. Its day is
 * the last one of the synthetic store.
 */
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Clock, Context, Effect, Exit, Layer, Scope } from "effect"
import { TestClock } from "effect/testing"
import { logMemory } from "#journal"
import { CapitalPressureModel } from "#projections/capital-pressure/blueprint.ts"
import type { Settings } from "#schemas/settings.ts"
import { capitalPressure } from "#server/capital-pressure/capital-pressure.ts"
import { sqlite } from "#sqlite"
import { type Served, type Setup, serveHttp, settingsWith } from "../http.ts"
import { synthetic_last_day } from "./synthetic-store.ts"

/** Noon of that day in UTC, before the day's ingest is due. */
export const noon_ms = synthetic_last_day * 86_400_000 + 43_200_000

export interface Dashboarded extends Served {
  /** The file that the dashboard shows. */
  readonly path: string
  /** Sets the clock that determines the dashboard's day. */
  readonly setTime: (ms: number) => Promise<void>
  readonly stop: () => Promise<void>
}

export type GivenCapital = Partial<Settings["capital"]>

/** Serves the file at `path` in a new folder; it does not have to exist. */
export const startDashboard = async (
  capital: GivenCapital = {},
  setup: Pick<Setup, "authenticate"> = {},
): Promise<Dashboarded> => {
  const folder = mkdtempSync(join(tmpdir(), "almanac-dashboard-"))
  const path = join(folder, "capital.sqlite")
  const scope = Effect.runSync(Scope.make())
  const settings = { capital: { database: path, ...capital } }
  const model = CapitalPressureModel.layer.pipe(
    Layer.provide([logMemory, sqlite(join(folder, "read-models"))]),
  )
  const run = Effect.gen(function* () {
    const clock = yield* TestClock.make()
    yield* clock.setTime(noon_ms)
    const around = yield* Layer.build(model)
    const service = yield* capitalPressure({ settings: settingsWith(settings) }).pipe(
      Effect.provideContext(Context.add(around, Clock.Clock, clock)),
    )
    const served = yield* serveHttp([service], { settings, ...setup })
    return { clock, served }
  })
  const { clock, served } = await Effect.runPromise(Scope.provide(run, scope))
  return {
    ...served,
    path,
    setTime: (ms) => Effect.runPromise(clock.setTime(ms)),
    stop: async () => {
      await Effect.runPromise(Scope.close(scope, Exit.void))
      rmSync(folder, { recursive: true, force: true })
    },
  }
}
