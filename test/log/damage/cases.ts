/** Large numbers of cases, each with its own seed. */
import { join } from "node:path"
import { Effect, Logger } from "effect"
import { checkCase, drawCase } from "./case.ts"
import { damage_names } from "./damage.ts"
import { makeMasters } from "./masters.ts"

export interface Cases {
  /** The folder for masters and copies; the caller removes it. */
  readonly folder: string
  readonly seed: number
  readonly count: number
  readonly onCase?: (done: number) => void
}

/** Violations, one line for each failing case. */
const faultsOf = Effect.fnUntraced(function* ({ folder, seed, count, onCase }: Cases) {
  const masters = yield* makeMasters(join(folder, "masters"))
  const data_dir = join(folder, "case")
  const faults: Array<string> = []
  for (let n = 0; n < count; n++) {
    const drawn = drawCase(seed + n, masters)
    const fault = yield* checkCase(masters, drawn, data_dir)
    if (fault !== undefined) faults.push(`seed ${seed + n}: ${fault}`)
    onCase?.(n + 1)
  }
  return faults
})

/** Runs each damage once, alone, on the masters in turn. */
const faultsOfEach = Effect.fnUntraced(function* ({ folder, seed }: Omit<Cases, "count">) {
  const masters = yield* makeMasters(join(folder, "masters"))
  const names = ["killed 1", "stopped 1", "killed 2", "stopped 2"] as const
  const faults: Array<string> = []
  for (const [n, name] of damage_names.entries()) {
    const master = names[(n + seed) % names.length] ?? "killed 1"
    const one = { master, damages: [{ name, seed }] }
    const fault = yield* checkCase(masters, one, join(folder, "case"))
    if (fault !== undefined) faults.push(fault)
  }
  return faults
})

/** Hides the log output of each start from the test's output. */
const quiet = Effect.provide(Logger.layer([]))

export const runCases = (cases: Cases) => Effect.runPromise(quiet(faultsOf(cases)))
export const runEach = (cases: Omit<Cases, "count">) =>
  Effect.runPromise(quiet(faultsOfEach(cases)))
