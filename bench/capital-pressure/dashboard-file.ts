/** The dashboard as the server runs it, with twenty generated years, and the input of its peers. */
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { metrics } from "#schemas/capital-pressure/registry.ts"
import { findTree, type TreeName, treeEnvironment, trees } from "../../launcher/trees.mjs"
import { startGateway } from "../gateway/almanac-gateway.ts"
import { runVerb } from "../harness/verb.ts"

/**
 * Debian's own Python, because the packages are for its version; PATH may list another one first.
 */
const python = "/usr/bin/python3"
const ms_of_day = 86_400_000

export interface DashboardStage {
  readonly url: string
  readonly token: string
  /** The SQLite file that all of them read. */
  readonly file: string
  /** The metrics with their rules, as JSON; stubs are left out. */
  readonly rules: string
  /** Days since 1970-01-01. */
  readonly today: number
  /** Environment variables that let a command find the running instance. */
  readonly environment: NodeJS.ProcessEnv
  readonly stop: () => Promise<void>
}

/** Starts the server in `folder` and fills it with `ingest --demo`. */
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

/** Python with the tree's packages; throws if they are not installed. */
export const pythonOf = (name: TreeName) => {
  const tree = findTree(name)
  if (tree === undefined) throw new Error(`${name} is not here: ${trees[name].install_command}`)
  return { python, environment: { ...process.env, ...treeEnvironment(tree) } }
}
