/** Where the dashboard's file is. Source: decisions of document 3, dashboard storage. */
import { resolve } from "node:path"
import type { Settings } from "#schemas/settings.ts"

const name = "capital-pressure.sqlite"

/** An absolute path. Whether there is a file, or its folder, is not looked at. */
export const capitalFile = ({ capital, data }: Pick<Settings, "capital" | "data">) =>
  capital.database === "" ? unnamedCapitalFile({ data }) : resolve(capital.database)

/** Where it is when nobody names it: there it can be no other program's. */
export const unnamedCapitalFile = ({ data }: Pick<Settings, "data">) => resolve(data.dir, name)
