/** Cases in numbers, each of a seed of its own. */
import { join } from "node:path"
import { Effect, Logger } from "effect"
import { checkCase, drawCase } from "./case.ts"
import { damage_names } from "./damage.ts"
import { makeMasters } from "./masters.ts"

export interface Cases {
  /** Where masters and copies are; removed by the caller. */
  readonly folder: string
  readonly seed: number
  readonly count: number
  readonly onCase?: (done: number) => void
}

/** What is wrong, one line for each case that broke the law. */
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

/** Each damage once, alone, on one of the masters in turn. */
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

/** What each start says is not the test's output. */
const quiet = Effect.provide(Logger.layer([]))

export const runCases = (cases: Cases) => Effect.runPromise(quiet(faultsOf(cases)))
export const runEach = (cases: Omit<Cases, "count">) =>
  Effect.runPromise(quiet(faultsOfEach(cases)))
