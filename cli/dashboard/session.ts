/**
 * Services of a dashboard command: commands to the log, and the dashboard's file. A running
 * instance writes the file; without one this process does.
 *
 * Source: DECISIONS, How it is run and reached, and document 3, dashboard storage.
 */
import { Effect, Layer, Option } from "effect"
import { host } from "#actors/host.ts"
import { capitalFile } from "#adapters/capital-pressure/dashboard-file.ts"
import { openStore } from "#adapters/capital-pressure/store.ts"
import { findInstance } from "#adapters/data-folder/instance-file.ts"
import { DashboardFile } from "#cli/dashboard/dashboard-file.ts"
import type { Settings } from "#schemas/settings.ts"
import { attachedLog } from "#server/session.ts"

/** Position of a file that another process writes; reopened, because it may be replaced. */
const positionAt = (path: string) => {
  try {
    const file = openStore(path)
    try {
      // One row of one column, by packages/sqlite/sqlite.ts.
      return file.prepare("select position from checkpoint").pluck().get() as number
    } finally {
      file.close()
    }
  } catch {
    return 0
  }
}

const besideInstance = (settings: Settings) => {
  const path = capitalFile(settings)
  const position = Effect.sync(() => positionAt(path))
  return Layer.merge(host, Layer.succeed(DashboardFile, { path, position })).pipe(
    Layer.provideMerge(attachedLog(settings)),
  )
}

/** Loaded on demand, because it takes half of the startup time. */
const withoutInstance = (settings: Settings) =>
  Layer.unwrap(
    Effect.map(
      Effect.promise(() => import("#cli/dashboard/exclusive-session.ts")),
      ({ exclusiveSession: capitalAlone }) => capitalAlone(settings),
    ),
  )

const either = <A, E, OtherE>(
  is_first: boolean,
  first: Layer.Layer<A, E>,
  other: Layer.Layer<A, OtherE>,
): Layer.Layer<A, E | OtherE> => (is_first ? first : other)

/** Commands, the log, and the file, which has caught up with the log at the start. */
export const capitalSession = (settings: Settings) =>
  Layer.unwrap(
    Effect.map(findInstance(settings.data.dir), (instance) =>
      either(Option.isSome(instance), besideInstance(settings), withoutInstance(settings)),
    ),
  )
