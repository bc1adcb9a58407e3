/** The path of the dashboard's database. Source: decisions of document 3, dashboard storage. */
import { resolve } from "node:path"
import type { Settings } from "#schemas/settings.ts"

const name = "capital-pressure.sqlite"

/** The absolute path, which need not exist. */
export const capitalFile = ({ capital, data }: Pick<Settings, "capital" | "data">) =>
  capital.database === "" ? unnamedCapitalFile({ data }) : resolve(capital.database)

/** The default path, which no other program can use. */
export const unnamedCapitalFile = ({ data }: Pick<Settings, "data">) => resolve(data.dir, name)
