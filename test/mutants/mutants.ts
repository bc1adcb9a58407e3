/**
 * Mutation testing by sample: changes one operator, condition or constant at a time in a copy of
 * the tree, and runs the related tests. A surviving mutant may reveal a missing test.
 */
import { execFileSync } from "node:child_process"
import { existsSync, globSync, readFileSync, writeFileSync } from "node:fs"
import { join, resolve } from "node:path"
import { parseArgs } from "node:util"
import { root } from "../house/tree.ts"
import { chooseMutations, type Mutation, mutate, type Source } from "./mutation.ts"
import { relatedTests } from "./related.ts"
import { makeScratch, type Scratch } from "./scratch.ts"

const help = `Usage: node test/mutants/mutants.ts [options]

  --seed N      seed of the choice of mutants (default 31)
  --count N     number of mutants (default 60)
  --tree PATH   checkout to mutate, with its node_modules (default: this one); it is not changed
  --json FILE   write results after each mutant; a later run with the same file resumes
  --only N      run the Nth mutant only
  --list        print the mutants and run no test
  --tests N     run at most the N nearest test files of a mutant (default 60)

Example:
  node test/mutants/mutants.ts --seed 31 --count 60 --json /tmp/mutants.json
`

const mutated = "{actors,projections,gateway,schemas}/**/*.ts"

/** The nearest tests kill most mutants within seconds; each later batch is twice as large. */
const first_batch = 3
const batch_max = 24
/** Three times the time of the slowest batch on two busy cores. */
const batch_limit_s = 240

interface Result {
  readonly mutation: Mutation
  readonly outcome: "killed" | "survived" | "timed out"
  /** The test that failed. */
  readonly by: string
  /**
   * Number of test files that ran, of those that also fail without the mutant, and of related ones.
   */
  readonly ran: number
  readonly unhealthy: ReadonlyArray<string>
  readonly related: number
  readonly seconds: number
}

interface Results {
  readonly seed: number
  readonly commit: string
  readonly results: ReadonlyArray<Result>
}

interface Run {
  readonly scratch: Scratch
  readonly related: (path: string) => ReadonlyArray<string>
  readonly textOf: (path: string) => string
  /** Test files, and whether they pass without a mutant. */
  readonly healthy: Map<string, boolean>
  readonly tests_max: number
}

const readSources = (tree: string): ReadonlyArray<Source> => {
  const list = ["ls-files", "--cached", "--others", "--exclude-standard", "*.ts"]
  const paths = execFileSync("git", list, { cwd: tree, encoding: "utf8" }).trim().split("\n")
  return paths
    .filter((path) => existsSync(join(tree, path)))
    .toSorted()
    .map((path) => ({ path, text: readFileSync(join(tree, path), "utf8") }))
}

/** Whether the files pass without the mutant within the limit. */
const isHealthy = async (run: Run, { path }: Mutation, tests: ReadonlyArray<string>) => {
  run.scratch.write(path, run.textOf(path))
  const { outcome, failed } = await run.scratch.run(tests, batch_limit_s)
  const is_healthy = outcome === "passed"
  for (const test of failed.length > 0 ? failed : tests) run.healthy.set(test, is_healthy)
  return is_healthy
}

interface End {
  readonly outcome: "killed" | "timed out"
  readonly by: string
}

/**
 * Runs one batch with the mutant; undefined if no test notices it. A failure counts only if the
 * failed file passes without the mutant and fails with it a second time, so that a flaky test kills
 * nothing. A timeout counts only if the batch is in time without the mutant.
 */
const runBatch = async (
  run: Run,
  mutation: Mutation,
  batch: ReadonlyArray<string>,
): Promise<End | undefined> => {
  const { scratch, healthy } = run
  const text = mutate(run.textOf(mutation.path), mutation)
  for (let tests = batch; ; ) {
    tests = tests.filter((test) => healthy.get(test) !== false)
    if (tests.length === 0) return undefined
    scratch.write(mutation.path, text)
    const { outcome, failed, test } = await scratch.run(tests, batch_limit_s)
    if (outcome === "passed") return undefined
    const is_late = outcome === "timed out"
    if (is_late && tests.length > 1) {
      const half = Math.ceil(tests.length / 2)
      const end = await runBatch(run, mutation, tests.slice(0, half))
      return end ?? (await runBatch(run, mutation, tests.slice(half)))
    }
    const suspects = failed.length === 0 ? tests : failed.slice(0, 1)
    const is_known = !is_late && suspects.every((suspect) => healthy.get(suspect))
    if (!is_known && !(await isHealthy(run, mutation, suspects))) continue
    scratch.write(mutation.path, text)
    const again = await scratch.run(suspects, batch_limit_s)
    const by = `${suspects[0]}: ${again.test || test}`
    if (again.outcome === "timed out") return { outcome: "timed out", by }
    if (again.outcome === "failed") return { outcome: "killed", by }
    for (const flaky of suspects) healthy.set(flaky, false)
  }
}

const runMutant = async (run: Run, mutation: Mutation): Promise<Result> => {
  const since = performance.now()
  const seconds = () => Math.round((performance.now() - since) / 1000)
  const related = run.related(mutation.path)
  const tests = related.slice(0, run.tests_max)
  let ran = 0
  let size = first_batch
  const done = (outcome: Result["outcome"], by: string): Result => {
    run.scratch.write(mutation.path, run.textOf(mutation.path))
    const unhealthy = tests.slice(0, ran).filter((test) => run.healthy.get(test) === false)
    return { mutation, outcome, by, ran, unhealthy, related: related.length, seconds: seconds() }
  }
  while (ran < tests.length) {
    const batch = tests.slice(ran, ran + size)
    ran += batch.length
    size = Math.min(2 * size, batch_max)
    const end = await runBatch(run, mutation, batch)
    if (end !== undefined) return done(end.outcome, end.by)
  }
  return done("survived", "")
}

const describe = ({ path, line, kind, before, after }: Mutation) =>
  `${path}:${line} ${kind}\n    - ${before}\n    + ${after}`

const readResults = (file: string | undefined, seed: number, commit: string) => {
  if (file === undefined || !existsSync(file)) return []
  const before: Results = JSON.parse(readFileSync(file, "utf8"))
  if (before.seed === seed && before.commit === commit) return before.results
  throw new Error(`${file} has results of seed ${before.seed} at commit ${before.commit}`)
}

const isSame = (a: Mutation, b: Mutation) =>
  a.path === b.path && a.start === b.start && a.replacement === b.replacement

const report = (results: ReadonlyArray<Result>) => {
  const count = (outcome: string) => results.filter((one) => one.outcome === outcome).length
  const [killed, late] = [count("killed"), count("timed out")]
  console.log(
    `${killed} of ${results.length} killed, ${late} timed out, ${count("survived")} survived`,
  )
}

const { values } = parseArgs({
  options: {
    seed: { type: "string", default: "31" },
    count: { type: "string", default: "60" },
    tree: { type: "string", default: root },
    json: { type: "string" },
    only: { type: "string" },
    tests: { type: "string", default: "60" },
    list: { type: "boolean", default: false },
    help: { type: "boolean", default: false },
  },
})

const runAll = async (
  mutations: ReadonlyArray<Mutation>,
  sources: ReadonlyArray<Source>,
  tree: string,
) => {
  const texts = new Map(sources.map(({ path, text }) => [path, text]))
  const { imports } = JSON.parse(readFileSync(join(tree, "package.json"), "utf8"))
  const commit = execFileSync("git", ["rev-parse", "HEAD"], { cwd: tree, encoding: "utf8" }).trim()
  const seed = Number(values.seed)
  const results = [...readResults(values.json, seed, commit)]
  const run: Run = {
    scratch: makeScratch(tree),
    related: relatedTests(sources, imports),
    textOf: (path) => texts.get(path) ?? "",
    healthy: new Map(),
    tests_max: Number(values.tests),
  }
  process.once("exit", run.scratch.remove)
  for (const signal of ["SIGINT", "SIGTERM"]) process.once(signal, () => process.exit(1))
  for (const [i, mutation] of mutations.entries()) {
    if (values.only !== undefined && Number(values.only) !== i + 1) continue
    if (results.some((one) => isSame(one.mutation, mutation))) continue
    const result = await runMutant(run, mutation)
    const { outcome, by, ran, related, seconds } = result
    console.log(`${i + 1}. ${outcome} in ${seconds} s, ${ran} of ${related} test files: ${by}`)
    console.log(`    ${describe(mutation)}`)
    if (result.unhealthy.length > 0) console.log(`    left out: ${result.unhealthy.join(" ")}`)
    results.push(result)
    const all: Results = { seed, commit, results }
    if (values.json !== undefined) writeFileSync(values.json, JSON.stringify(all, undefined, 2))
  }
  report(results)
}

const main = async () => {
  if (values.help) {
    process.stdout.write(help)
    return
  }
  const tree = resolve(values.tree)
  const sources = readSources(tree)
  const wanted = new Set(globSync(mutated, { cwd: tree }))
  const middle = sources.filter(({ path }) => wanted.has(path))
  const mutations = chooseMutations(middle, Number(values.seed), Number(values.count))
  if (!values.list) return runAll(mutations, sources, tree)
  for (const [i, mutation] of mutations.entries()) console.log(`${i + 1}. ${describe(mutation)}`)
}

await main()
