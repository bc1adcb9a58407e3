/** A long run of schemathesis. Prints its seed first. */
import { randomInt } from "node:crypto"
import { accepted_min, schemathesis } from "./run.ts"

const seed_max = 2 ** 31
/** The time ends the run, not the number of requests. */
const examples = 40

/** Runs for the given time; throws if a response is wrong. */
export const soakSchemathesis = async (minutes: number, given?: number) => {
  const seed = given ?? randomInt(1, seed_max)
  console.log(`soak: schemathesis, seed ${seed}`)
  const seconds = Math.round(minutes * 60)
  const verdict = await schemathesis({ seed, seconds, examples })
  const { wrong, loose, accepted, invalid, operations, summary } = verdict
  const percent = (share: number) => `${(share * 100).toFixed(1)}%`
  console.log(`soak: ${operations} operations; ${summary}`)
  console.log(`soak: ${percent(accepted)} accepted, ${percent(invalid)} rejected as invalid`)
  const problems = [...wrong, ...loose.map((one) => `the document is too loose: ${one}`)]
  if (problems.length > 0) throw new Error(problems.join("\n"))
  if (accepted < accepted_min) throw new Error("fewer than half of the valid requests succeed")
}
