/** The read models that this program keeps, by their service. */
import { Effect } from "effect"
import { capitalFile } from "#adapters/capital-file.ts"
import { sqlite } from "#adapters/sqlite.ts"
import { blueprint as blob_storage } from "#projections/blob-storage/blueprint.ts"
import { blueprint as capital_pressure } from "#projections/capital-pressure/blueprint.ts"
import { type Blueprint, readModel } from "#projections/read-model.ts"
import { blueprint as share_protection } from "#projections/share-protection/blueprint.ts"
import { blueprint as system } from "#projections/system/blueprint.ts"
import type { Settings } from "#schemas/settings.ts"
import { details } from "#verbs/audit-kinds.ts"

/** Where they are kept; the dashboard's in a file of its own, which others read. */
export const databases = (settings: Settings) =>
  sqlite(
    settings.database.connection.slice(connection_head.length),
    new Map([[capital_pressure.service, capitalFile(settings)]]),
  )

/** What stands before the folder in `database.connection`. */
const connection_head = "sqlite:///"

const opened = <Tables>(blueprint: Blueprint<Tables>) =>
  Effect.map(readModel(blueprint), ({ position, rebuild, difference }) => ({
    ...{ position, rebuild, difference },
  }))

/** Brought to the log's end when it is run, and kept there for as long as the scope lives. */
export const read_models = new Map([
  ["blob-storage", opened(blob_storage)],
  ["share-protection", opened(share_protection)],
  ["capital-pressure", opened(capital_pressure)],
  ["system", opened(system(details))],
])
