/** Where the dashboard's file is. Source: decisions of document 3, dashboard storage. */
import { join, resolve } from "node:path"
import type { Settings } from "#schemas/settings.ts"

const name = "capital-pressure.sqlite"

/** An absolute path. Whether there is a file, or its folder, is not looked at. */
export const capitalFile = ({ capital, data }: Pick<Settings, "capital" | "data">) =>
  resolve(capital.database === "" ? join(data.dir, name) : capital.database)
