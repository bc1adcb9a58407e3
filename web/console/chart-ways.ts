/** Where an aggregate stands in its chart, and which ways led there. Pure. */
import type { Chart, ChartState, ChartWay } from "./api.ts"

/** The states that a snapshot's value names, each with those that it is in, by path. */
export const activeOf = (value: unknown, within = ""): readonly string[] => {
  const pathOf = (key: string) => (within === "" ? key : `${within}.${key}`)
  if (typeof value === "string") return [pathOf(value)]
  if (typeof value !== "object" || value === null) return []
  return Object.entries(value).flatMap(([key, inner]) => [
    pathOf(key),
    ...activeOf(inner, pathOf(key)),
  ])
}

const isWithin = (path: string, outer: string) =>
  outer === "" || path === outer || path.startsWith(`${outer}.`)

const parentOf = (path: string) => path.slice(0, Math.max(0, path.lastIndexOf(".")))

/** A state, and those within it where it begins. */
const begun = (chart: Chart, path: string): readonly string[] => {
  const state = chart.states.find((one) => one.path === path)
  const inside = chart.states.filter(({ parent }) => parent === path)
  const next = state?.kind === "parallel" ? inside : inside.filter(({ is_initial }) => is_initial)
  return [path, ...next.flatMap((one) => begun(chart, one.path))]
}

/** Where a chart begins. */
export const initialOf = (chart: Chart): readonly string[] => {
  const top = chart.states.filter(({ parent }) => parent === "")
  const first = chart.kind === "parallel" ? top : top.filter(({ is_initial }) => is_initial)
  return first.flatMap(({ path }) => begun(chart, path))
}

/** A state and all that it is in. */
const withParents = (path: string): readonly string[] =>
  path === "" ? [] : [...withParents(parentOf(path)), path]

/** The innermost state with one state at a time that holds both ends of a way. */
const holderOf = (chart: Chart, from: string, to: string) => {
  const isParallel = (path: string) =>
    chart.states.some((state) => state.path === path && state.kind === "parallel")
  let holder = parentOf(to)
  while (holder !== "" && (!isWithin(from, holder) || isParallel(holder))) {
    holder = parentOf(holder)
  }
  return holder
}

/** The active states after a way was taken: what it left is gone, what it leads to has begun. */
const after = (chart: Chart, active: readonly string[], { from, to }: ChartWay) => {
  if (to === null) return active
  const holder = holderOf(chart, from, to)
  const kept = active.filter((path) => path === holder || !isWithin(path, holder))
  return [...new Set([...kept, ...withParents(to), ...begun(chart, to)])]
}

/** Of the ways that one state has for an event, the one that was taken, if any. */
const chosenOf = (
  ways: readonly ChartWay[],
  active: readonly string[],
  now: readonly string[],
  is_last: boolean,
) => {
  const may = ways.filter(({ to }) => !is_last || to === null || now.includes(to))
  const leads = may.find(({ to }) => to !== null && now.includes(to) && !active.includes(to))
  return leads ?? may.find(({ to }) => to === null || active.includes(to)) ?? may[0]
}

/**
 * The ways that these events took from `before` to `now`. A chart chooses by guards, which are not
 * told: of several ways for an event, the one that leads to where it stands now.
 */
export const takenOf = (
  chart: Chart,
  before: readonly string[],
  events: readonly string[],
  now: readonly string[],
): ReadonlySet<ChartWay> => {
  const taken = new Set<ChartWay>()
  let active = before
  for (const [index, event] of events.entries()) {
    const is_last = index === events.length - 1
    const open = chart.ways.filter(
      (way) => way.event === event && (way.from === "" || active.includes(way.from)),
    )
    const by_state = [...Map.groupBy(open, ({ from }) => from)]
    // An inner state goes before the one that it is in; states beside each other take it both.
    const inner_first = by_state.toSorted(([one], [other]) => other.length - one.length)
    const done: string[] = []
    for (const [from, ways] of inner_first) {
      if (done.some((one) => isWithin(one, from))) continue
      const chosen = chosenOf(ways, active, now, is_last)
      if (chosen === undefined) continue
      done.push(from)
      taken.add(chosen)
      active = after(chart, active, chosen)
    }
  }
  return taken
}

/** What is said of where it stands, from the outside in. */
export const toldOf = (chart: Chart, active: readonly string[]): readonly ChartState[] =>
  chart.states.filter(({ path, told }) => told !== null && active.includes(path))
