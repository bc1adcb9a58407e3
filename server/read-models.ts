/** The program's read models, by service. */
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

/** The prefix of the folder in `database.connection`. */
const connection_head = "sqlite:///"

/** The dashboard has its own file, because other programs read it. */
const own = (settings: Settings) => new Map([[capital_pressure.service, capitalFile(settings)]])

const inFiles = (settings: Settings, folder: string) =>
  sqlite(folder, own(settings), unnamedCapitalFile(settings))

/** All in PostgreSQL except the dashboard's, which document 3 requires to be a file. */
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

/** The databases. Only a process with the role `projections` writes shared ones by default. */
export const databases = (settings: Settings, is_writer = isWriter(settings)) => {
  const { connection } = settings.database
  return connection.startsWith(connection_head)
    ? inFiles(settings, connection.slice(connection_head.length))
    : mixed(settings, is_writer)
}

/** Why a read model is unavailable; undefined if it is available. */
export const problemOf = ({ isReachable }: Pick<ReadModel<unknown>, "isReachable">) =>
  Effect.sync(() => (isReachable() ? undefined : "cannot reach its read model's database"))

const opened = <Tables>(blueprint: Blueprint<Tables>) =>
  Effect.map(readModel(blueprint), ({ position, rebuild, difference }) => ({
    position,
    rebuild,
    difference,
  }))

/** Each effect brings its read model up to date and keeps it so until the scope closes. */
export const read_models = new Map([
  ["blob-storage", opened(blob_storage)],
  ["share-protection", opened(share_protection)],
  ["capital-pressure", opened(capital_pressure)],
  ["system", opened(system(details))],
  ["system-webhook", opened(webhook)],
])
