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
const withInitial = (chart: Chart, path: string): readonly string[] => {
  const state = chart.states.find((one) => one.path === path)
  const inside = chart.states.filter(({ parent }) => parent === path)
  const next = state?.kind === "parallel" ? inside : inside.filter(({ is_initial }) => is_initial)
  return [path, ...next.flatMap((one) => withInitial(chart, one.path))]
}

/** The initial states of a chart. */
export const initialOf = (chart: Chart): readonly string[] => {
  const top = chart.states.filter(({ parent }) => parent === "")
  const first = chart.kind === "parallel" ? top : top.filter(({ is_initial }) => is_initial)
  return first.flatMap(({ path }) => withInitial(chart, path))
}

/** A state and all states that contain it. */
const withParents = (path: string): readonly string[] =>
  path === "" ? [] : [...withParents(parentOf(path)), path]

/** The innermost state, other than a parallel one, that contains both ends of a transition. */
const containerOf = (chart: Chart, from: string, to: string) => {
  const isParallel = (path: string) =>
    chart.states.some((state) => state.path === path && state.kind === "parallel")
  let container = parentOf(to)
  while (container !== "" && (!isWithin(from, container) || isParallel(container))) {
    container = parentOf(container)
  }
  return container
}

/** The active states after a transition: minus those that it exits, plus those that it enters. */
const activeAfter = (chart: Chart, active: readonly string[], { from, to }: ChartTransition) => {
  if (to === null) return active
  const container = containerOf(chart, from, to)
  const remaining = active.filter((path) => path === container || !isWithin(path, container))
  return [...new Set([...remaining, ...withParents(to), ...withInitial(chart, to)])]
}

/** The transition taken among those that one state has for an event, if any. */
const chosenTransition = (
  transitions: readonly ChartTransition[],
  active: readonly string[],
  now: readonly string[],
  is_last: boolean,
) => {
  const candidates = transitions.filter(({ to }) => !is_last || to === null || now.includes(to))
  const entering = candidates.find(
    ({ to }) => to !== null && now.includes(to) && !active.includes(to),
  )
  return (
    entering ?? candidates.find(({ to }) => to === null || active.includes(to)) ?? candidates[0]
  )
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
    const enabled = chart.transitions.filter(
      (transition) =>
        transition.event === event && (transition.from === "" || active.includes(transition.from)),
    )
    const by_state = [...Map.groupBy(enabled, ({ from }) => from)]
    // Inner states take precedence over outer ones; parallel regions each take the event.
    const inner_first = by_state.toSorted(([one], [other]) => other.length - one.length)
    const handled: string[] = []
    for (const [from, transitions] of inner_first) {
      if (handled.some((one) => isWithin(one, from))) continue
      const chosen = chosenTransition(transitions, active, now, is_last)
      if (chosen === undefined) continue
      handled.push(from)
      taken.add(chosen)
      active = activeAfter(chart, active, chosen)
    }
  }
  return taken
}

/** Descriptions of the active states, outermost first. */
export const describedStates = (chart: Chart, active: readonly string[]): readonly ChartState[] =>
  chart.states.filter(({ path, description }) => description !== null && active.includes(path))
