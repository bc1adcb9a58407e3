/** Determines the active states of an aggregate and the transitions that led there. Pure. */
import type { Chart, ChartState, ChartTransition } from "./api.ts"

/** Paths of the states in a snapshot's value, including the outer ones. */
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

/** A state and its initial inner states. */
const begun = (chart: Chart, path: string): readonly string[] => {
  const state = chart.states.find((one) => one.path === path)
  const inside = chart.states.filter(({ parent }) => parent === path)
  const next = state?.kind === "parallel" ? inside : inside.filter(({ is_initial }) => is_initial)
  return [path, ...next.flatMap((one) => begun(chart, one.path))]
}

/** The initial states of a chart. */
export const initialOf = (chart: Chart): readonly string[] => {
  const top = chart.states.filter(({ parent }) => parent === "")
  const first = chart.kind === "parallel" ? top : top.filter(({ is_initial }) => is_initial)
  return first.flatMap(({ path }) => begun(chart, path))
}

/** A state and all states that contain it. */
const withParents = (path: string): readonly string[] =>
  path === "" ? [] : [...withParents(parentOf(path)), path]

/** The innermost state, other than a parallel one, that contains both ends of a transition. */
const holderOf = (chart: Chart, from: string, to: string) => {
  const isParallel = (path: string) =>
    chart.states.some((state) => state.path === path && state.kind === "parallel")
  let holder = parentOf(to)
  while (holder !== "" && (!isWithin(from, holder) || isParallel(holder))) {
    holder = parentOf(holder)
  }
  return holder
}

/**
 * The active states after a transition: without those that it leaves, with those that it enters.
 */
const after = (chart: Chart, active: readonly string[], { from, to }: ChartTransition) => {
  if (to === null) return active
  const holder = holderOf(chart, from, to)
  const kept = active.filter((path) => path === holder || !isWithin(path, holder))
  return [...new Set([...kept, ...withParents(to), ...begun(chart, to)])]
}

/** The transition taken among those that one state has for an event, if any. */
const chosenOf = (
  ways: readonly ChartTransition[],
  active: readonly string[],
  now: readonly string[],
  is_last: boolean,
) => {
  const may = ways.filter(({ to }) => !is_last || to === null || now.includes(to))
  const leads = may.find(({ to }) => to !== null && now.includes(to) && !active.includes(to))
  return leads ?? may.find(({ to }) => to === null || active.includes(to)) ?? may[0]
}

/**
 * The transitions that these events took from `before` to `now`. The charts name guards but do not
 * evaluate them, so of several transitions for an event, this picks the one that leads to the
 * current state.
 */
export const transitionsTaken = (
  chart: Chart,
  before: readonly string[],
  events: readonly string[],
  now: readonly string[],
): ReadonlySet<ChartTransition> => {
  const taken = new Set<ChartTransition>()
  let active = before
  for (const [index, event] of events.entries()) {
    const is_last = index === events.length - 1
    const open = chart.ways.filter(
      (way) => way.event === event && (way.from === "" || active.includes(way.from)),
    )
    const by_state = [...Map.groupBy(open, ({ from }) => from)]
    // Inner states take precedence over outer ones; parallel regions each take the event.
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

/** Descriptions of the active states, outermost first. */
export const describedStates = (chart: Chart, active: readonly string[]): readonly ChartState[] =>
  chart.states.filter(({ path, told }) => told !== null && active.includes(path))
