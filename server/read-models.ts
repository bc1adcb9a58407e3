/** The read models that this program keeps, by their service. */
import { Context, Effect, Layer } from "effect"
import { capitalFile, unnamedCapitalFile } from "#adapters/capital-pressure/dashboard-file.ts"
import { postgres } from "#postgres"
import { blueprint as blob_storage } from "#projections/blob-storage/blueprint.ts"
import { blueprint as capital_pressure } from "#projections/capital-pressure/blueprint.ts"
import { Databases } from "#projections/database.ts"
import { type Blueprint, type ReadModel, readModel } from "#projections/read-model.ts"
import { blueprint as share_protection } from "#projections/share-protection/blueprint.ts"
import { blueprint as system } from "#projections/system/blueprint.ts"
import { blueprint as webhook } from "#projections/system/webhook-model.ts"
import type { Settings } from "#schemas/settings.ts"
import { details } from "#server/audit-details.ts"
import { sqlite } from "#sqlite"

/** What stands before the folder in `database.connection`. */
const connection_head = "sqlite:///"

/** The dashboard's is a file of its own, which others read. */
const own = (settings: Settings) => new Map([[capital_pressure.service, capitalFile(settings)]])

const inFiles = (settings: Settings, folder: string) =>
  sqlite(folder, own(settings), unnamedCapitalFile(settings))

/** All in PostgreSQL but the dashboard's, which is a file by its document. */
const mixed = (settings: Settings, is_writer: boolean) =>
  Layer.effect(
    Databases,
    Effect.gen(function* () {
      const file = yield* Layer.build(inFiles(settings, settings.data.dir))
      const server = yield* Layer.build(postgres({ ...settings.database, is_writer }))
      return Databases.of({
        open: (design) => {
          const where = design.service === capital_pressure.service ? file : server
          return Context.get(where, Databases).open(design)
        },
      })
    }),
  )

const isWriter = ({ roles }: Settings) => roles.includes("projections")

/** Where they are kept. Of what processes share, one writes that has the role, or is asked to. */
export const databases = (settings: Settings, is_writer = isWriter(settings)) => {
  const { connection } = settings.database
  return connection.startsWith(connection_head)
    ? inFiles(settings, connection.slice(connection_head.length))
    : mixed(settings, is_writer)
}

/** Why what a read model shows cannot be had now, or undefined. */
export const troubleOf = ({ is_reached }: Pick<ReadModel<unknown>, "is_reached">) =>
  Effect.sync(() => (is_reached() ? undefined : "cannot reach the database of its read model"))

const opened = <Tables>(blueprint: Blueprint<Tables>) =>
  Effect.map(readModel(blueprint), ({ position, rebuild, difference }) => ({
    position,
    rebuild,
    difference,
  }))

/** Brought to the log's end when it is run, and kept there for as long as the scope lives. */
export const read_models = new Map([
  ["blob-storage", opened(blob_storage)],
  ["share-protection", opened(share_protection)],
  ["capital-pressure", opened(capital_pressure)],
  ["system", opened(system(details))],
  ["system-webhook", opened(webhook)],
])
