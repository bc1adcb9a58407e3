/** A generation of the log that is killed while it begins, and the state that it leaves. */
import assert from "node:assert/strict"
import { cpSync, existsSync } from "node:fs"
import { join } from "node:path"
import { newFolder, outputOf, runVerb, startScript } from "../../world/server/server.ts"

/** One service, and an early checkpoint. */
export const environment = {
  ALMANAC_SERVICES: "blob-storage",
  ALMANAC_AUDIT__CHECKPOINT_COMMITS: "5",
  ALMANAC_AUDIT__CHECKPOINT_SECONDS: "1",
}

/** The step after which the new generation is active: its first commit. */
export const begun_step = 6

/** The output of a command, which must succeed. */
export const generationVerb = async (folder: string, ...args: ReadonlyArray<string>) => {
  const { code, stdout, stderr } = await runVerb(folder, args, environment)
  assert.equal(code, 0, `${args.join(" ")}: ${stdout}${stderr}`)
  return stdout
}

/** All commits up to a position, one per line. */
export const replayedUpTo = (folder: string, last: number) =>
  generationVerb(folder, "audit", "replay", "--last", String(last))

const figures = async (folder: string): Promise<{ generation: number; position: number }> =>
  JSON.parse(await generationVerb(folder, "log", "show", "--json"))

export const headOf = async (folder: string) => (await figures(folder)).position

/**
 * Begins a generation on a copy of the folder, kills it after a step, and asserts that the log is
 * unchanged and that the next attempt succeeds. Returns false if there is no such step.
 */
export const killedAfter = async (whole: string, step: number) => {
  const last = await headOf(whole)
  const before = await replayedUpTo(whole, last)
  const folder = newFolder()
  cpSync(whole, folder, { recursive: true })
  const child = startScript(folder, ["test/process/state/roll-child.ts", folder, String(step)])
  const { signal } = await child.ended
  if (/^steps \d+$/m.test(child.printed.stdout)) return false
  assert.equal(signal, "SIGKILL", outputOf(child))
  const { generation } = await figures(folder)
  assert.equal(generation, step < begun_step ? 1 : 2, `after step ${step}`)
  assert.equal(await replayedUpTo(folder, last), before)
  assert.match(await generationVerb(folder, "audit", "verify"), /^intact: /)
  const again = await runVerb(folder, ["log", "roll"], environment)
  // Everything was complete except for the final report.
  if (again.code !== 0) assert.match(again.stderr, /No commits were written/)
  assert.equal((await figures(folder)).generation, 2)
  assert.equal(await replayedUpTo(folder, last), before)
  assert.ok(existsSync(join(folder, "log", "generation-1.json")))
  return true
}
