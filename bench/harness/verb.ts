/** Commands of the program, each in its own process. */
import { spawnSync } from "node:child_process"
import { join } from "node:path"

const program = join(import.meta.dirname, "../../launcher/run.mjs")

/** Runs a command of the program to completion. */
export const runVerb = (verb: string, flags: ReadonlyArray<string>, env: NodeJS.ProcessEnv) => {
  const args = [program, verb, ...flags]
  const { status, stderr } = spawnSync(process.execPath, args, { env, encoding: "utf8" })
  if (status !== 0) throw new Error(`${verb} failed: ${stderr.slice(-400)}`)
}
