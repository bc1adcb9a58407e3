/**
 * A statechart as data for drawing: its states and the transitions between them.
 *
 * XState types a machine's nodes by the machine; this module reads only what all of them share.
 */
import type { AnyStateMachine, AnyStateNode } from "xstate"
import type { Chart, ChartState } from "#schemas/system/chart.ts"

/** A transition from a state on an event. It has no target if the state does not change. */
export interface Edge {
  readonly from: AnyStateNode
  readonly to: AnyStateNode | undefined
  readonly event: string
  /** The condition, in guard names; empty without a guard. */
  readonly guard: string
}

/** Every transition of a chart, or of one of its states, in source order. */
export const edgesOf = (node: AnyStateNode): ReadonlyArray<Edge> => [
  ...Object.entries(node.on).flatMap(([event, transitions]) =>
    transitions.map(({ target, guard }) => ({
      from: node,
      to: target?.[0],
      event,
      guard: guard === undefined ? "" : guardText(guard),
    })),
  ),
  ...childrenOf(node).flatMap(edgesOf),
]

// At runtime a guard is a name, a name with parameters, or a function that holds the guards it
// combines or the state it checks for.
interface Guard {
  readonly type?: string
  readonly name: string
  readonly guards?: ReadonlyArray<unknown>
  readonly stateValue?: unknown
}

const guardText = (guard: unknown): string => {
  if (typeof guard === "string") return guard
  // Holds for all three forms that are described above.
  const { type, name, guards, stateValue } = guard as Guard
  if (type !== undefined) return type
  const parts = guards?.map(guardText) ?? []
  if (name === "and") return parts.join(" and ")
  if (name === "or") return `(${parts.join(" or ")})`
  if (name === "not") return `not ${parts[0]}`
  if (name === "stateIn") return `is in ${stateText(stateValue)}`
  throw new Error(`A guard has no name: ${String(guard)}`)
}

const stateText = (value: unknown): string =>
  typeof value === "object" && value !== null
    ? Object.entries(value)
        .map(([key, inner]) => `${key}.${stateText(inner)}`)
        .join(" and ")
    : String(value)

/** The child states of a state, in source order. */
export const childrenOf = (node: AnyStateNode): ReadonlyArray<AnyStateNode> =>
  Object.values(node.states)

/** The path of a state, like `present.enrollment.pending`; the chart's own path is empty. */
export const pathOf = (node: AnyStateNode): string => node.path.join(".")

/** Descriptions of a chart and of its states, by path. */
export interface ChartTexts {
  readonly description: string
  readonly states: Readonly<Record<string, string>>
}

/** Our charts have no history states. */
const kindOf = ({ type }: AnyStateNode): Chart["kind"] => (type === "history" ? "atomic" : type)

const statesOf = (node: AnyStateNode, texts: ChartTexts | undefined): ReadonlyArray<ChartState> =>
  childrenOf(node).flatMap((child) => [
    {
      path: pathOf(child),
      name: child.key,
      parent: pathOf(node),
      kind: kindOf(child),
      is_initial: node.type === "compound" && node.initial?.target[0] === child,
      description: texts?.states[pathOf(child)] ?? null,
    },
    ...statesOf(child, texts),
  ])

/** The chart as data. Throws if a guard has no name; a test prevents that. */
export const chartData = ({ id, root }: AnyStateMachine, texts?: ChartTexts): Chart => ({
  id,
  description: texts?.description ?? null,
  kind: kindOf(root),
  states: statesOf(root, texts),
  transitions: edgesOf(root).map(({ from, to, event, guard }) => ({
    from: pathOf(from),
    to: to === undefined ? null : pathOf(to),
    event,
    guard,
  })),
})
