/** pandas' results for a store, for tests: Debian's package, from the system or a tree. */
import { spawnSync } from "node:child_process"
import { join } from "node:path"
import { describe, expect, it } from "vitest"
import { compositeOf } from "#projections/capital-pressure/composite.ts"
import { type Score, scoreOf } from "#projections/capital-pressure/score.ts"
import type { Series } from "#projections/capital-pressure/store.ts"
import { isBusinessDay, yearsBefore } from "#schemas/capital-pressure/day.ts"
import type { Metric } from "#schemas/capital-pressure/metric.ts"
import { findMetric } from "#schemas/capital-pressure/registry.ts"
import { findTree, treeEnvironment, trees } from "../../../launcher/trees.mjs"
import { describeAbsent } from "../programs/absent.ts"
import { synthetic_last_day, syntheticStore } from "./synthetic-store.ts"

/** Debian's own Python, which matches the packages: another version may come first in PATH. */
const python = "/usr/bin/python3"
const answer_bytes_max = 2 ** 28
const tolerance = 1e-9
const seed = 7

type Numbers = ReadonlyArray<number | null>

interface Answer {
  readonly scores: Readonly<
    Record<string, { days: ReadonlyArray<number>; indicator: Numbers; z: Numbers; exact: Numbers }>
  >
  readonly composite: { days: ReadonlyArray<number>; z: Numbers; tiers: ReadonlyArray<Numbers> }
}

type Given = readonly [metric: Metric, observed: Series]

const ask = (tree: string, given: ReadonlyArray<Given>, from_day: number, to_day: number) => {
  const series = given.map(([metric, { days, values }]) => ({
    ...metric,
    days: Array.from(days),
    values: Array.from(values),
  }))
  const { stdout, stderr } = spawnSync(python, [join(import.meta.dirname, "pandas-reference.py")], {
    env: { ...process.env, ...treeEnvironment(tree) },
    input: JSON.stringify({ series, from_day, to_day }),
    encoding: "utf8",
    maxBuffer: answer_bytes_max,
  })
  if (stdout === "") throw new Error(stderr)
  const answer: Answer = JSON.parse(stdout)
  return answer
}

/** Maximum distance between our values and theirs: relative for values above 1. */
const distance = (ours: Float64Array, theirs: Numbers) => {
  expect(ours.length).toBe(theirs.length)
  return ours.reduce((furthest, one, index) => {
    const other = theirs[index] ?? null
    if (other === null || Number.isNaN(one)) {
      return Number.isNaN(one) === (other === null) ? furthest : Number.POSITIVE_INFINITY
    }
    return Math.max(furthest, Math.abs(one - other) / Math.max(1, Math.abs(other)))
  }, 0)
}

const metricOf = (metric_id: string): Metric => {
  const metric = findMetric(metric_id)
  if (metric === undefined) throw new Error(`there is no metric ${metric_id}`)
  return metric
}

/**
 * Series on which running sums lose precision, even in pandas (an outlier leaves it 0.06 off), so
 * they are compared with numpy's deviation of each window. None is part of the composite.
 */
const hardSeries = (): ReadonlyArray<Given> => {
  const { observations } = syntheticStore(seed)
  const { days, values } = observations.get("nfci") ?? { days: new Int32Array(), values: [] }
  const of = (metric_id: string, value: (noise: number, index: number) => number): Given => [
    { ...metricOf("nfci"), metric_id, include_in_composite: false },
    { days, values: Float64Array.from(values, value) },
  ]
  return [
    of("assets", (noise) => 6.7e6 + 40 * noise),
    of("ramp", (noise, index) => 6.7e6 + 1e4 * index + 40 * noise),
    of("outlier", (noise, index) => noise + (index % 400 === 399 ? 1e7 : 0)),
    of("steps", (_, index) => Math.floor(index / 300)),
  ]
}

const define = (tree: string) => {
  const { observations } = syntheticStore(seed)
  const given = [...observations].map(([id, series]): Given => [metricOf(id), series])
  const hard = hardSeries()
  const from_day = yearsBefore(synthetic_last_day, 20) + 1
  const answer = ask(tree, [...given, ...hard], from_day, synthetic_last_day)
  const scores = new Map<string, Score>(
    [...given, ...hard].map(([metric, series]) => [metric.metric_id, scoreOf(metric, series)]),
  )

  const names = (some: ReadonlyArray<Given>) => some.map(([{ metric_id }]) => metric_id)
  const found = (metric_id: string) => {
    const [score, reference] = [scores.get(metric_id), answer.scores[metric_id]]
    if (score === undefined || reference === undefined) throw new Error("it has no answer")
    return { score, reference }
  }

  it.each(names(given))("%s: indicator and z-scores to 1e-9", (metric_id) => {
    const { score, reference } = found(metric_id)
    expect(Array.from(score.days)).toEqual(reference.days)
    expect(distance(score.indicator, reference.indicator)).toBeLessThan(tolerance)
    expect(distance(score.z, reference.z)).toBeLessThan(tolerance)
    expect(score.z.filter((one) => !Number.isNaN(one)).length).toBeGreaterThan(50)
  })

  it.each([...names(given), ...names(hard)])("%s: each window by itself to 1e-9", (metric_id) => {
    const { score, reference } = found(metric_id)
    const exact = reference.exact.map((one, index) => (reference.z[index] === null ? null : one))
    expect(distance(score.z, exact)).toBeLessThan(tolerance)
    expect(exact.some((one) => one !== null)).toBe(true)
  })

  it("20 years of the composite and its tiers to 1e-9", () => {
    const days = Int32Array.from(answer.composite.days)
    const length = synthetic_last_day - from_day + 1
    const all = Array.from({ length }, (_, index) => from_day + index)
    expect(Array.from(days)).toEqual(all.filter(isBusinessDay))
    expect(days.length).toBe(5219)
    const ours = compositeOf([...scores.values()], days)
    expect(distance(ours.z, answer.composite.z)).toBeLessThan(tolerance)
    for (const [index, tier] of ours.tiers.entries()) {
      expect(distance(tier, answer.composite.tiers[index] ?? [])).toBeLessThan(tolerance)
    }
  })
}

/** Defines the tests; without pandas they are skipped, or fail if `is_required`. */
export const agreementWithPandas = ({ is_required }: { readonly is_required: boolean }) => {
  const name = "agreement with pandas"
  const tree = findTree("pandas")
  if (tree !== undefined) return describe(name, () => define(tree))
  const why = `pandas is needed: ${trees.pandas.install_command}`
  return describeAbsent(name, "pandas", why, is_required)
}
