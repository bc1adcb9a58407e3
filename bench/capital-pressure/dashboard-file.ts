/** The dashboard as it is served, with twenty generated years, and what its peers are given. */
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { metrics } from "#schemas/capital-pressure/registry.ts"
import { findTree, type TreeName, treeEnvironment, trees } from "../../launcher/trees.mjs"
import { startGateway } from "../gateway/almanac-gateway.ts"
import { runVerb } from "../harness/verb.ts"

/** Debian's own Python, whose version the packages are for: another one may come first in PATH. */
const python = "/usr/bin/python3"
const ms_of_day = 86_400_000

export interface DashboardStage {
  readonly url: string
  readonly token: string
  /** The SQLite file that all of them read. */
  readonly file: string
  /** The metrics with their rules, as JSON: live ones only. */
  readonly rules: string
  /** Days since 1970-01-01. */
  readonly today: number
  /** Variables in which a verb finds the running instance. */
  readonly environment: NodeJS.ProcessEnv
  readonly stop: () => Promise<void>
}

/** Starts the server in `folder` and lets `ingest --demo` fill it. */
export const openDashboard = async (folder: string): Promise<DashboardStage> => {
  const settings = { ALMANAC_SERVICES: '["capital-pressure"]' }
  const { url, token, stop } = await startGateway(folder, settings)
  const environment = { ...process.env, ...settings, ALMANAC_DATA_DIR: folder }
  runVerb("ingest", ["--demo"], environment)
  const rules = join(folder, "rules.json")
  writeFileSync(rules, JSON.stringify(metrics.filter(({ stub }) => stub === null)))
  const file = join(folder, "capital-pressure.sqlite")
  const today = Math.floor(Date.now() / ms_of_day)
  return { url: new URL(url).origin, token, file, rules, today, environment, stop }
}

/** Python with what the tree holds; throws where nobody has it. */
export const pythonOf = (name: TreeName) => {
  const tree = findTree(name)
  if (tree === undefined) throw new Error(`${name} is not here: ${trees[name].install_command}`)
  return { python, environment: { ...process.env, ...treeEnvironment(tree) } }
}
