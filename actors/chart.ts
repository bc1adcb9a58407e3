/**
 * A chart told as data: its states, and the ways between them, for whoever draws it.
 *
 * XState types a machine's nodes by its machine; what is read of them here is the same for all.
 */
import type { AnyStateMachine, AnyStateNode } from "xstate"
import type { Chart, ChartState } from "#schemas/system/chart.ts"

/** One way from a state, by an event. No target where the state stays. */
export interface Edge {
  readonly from: AnyStateNode
  readonly to: AnyStateNode | undefined
  readonly event: string
  /** What must be so, by the guards' names; empty where nothing must. */
  readonly guard: string
}

/** Every way of a chart, or of a state of one, in the order in which they were written. */
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

// At runtime a guard is a name, a name with what it is asked of, or a function that holds the
// guards that it combines, or the state that it asks for.
interface Guard {
  readonly type?: string
  readonly name: string
  readonly guards?: ReadonlyArray<unknown>
  readonly stateValue?: unknown
}

const guardText = (guard: unknown): string => {
  if (typeof guard === "string") return guard
  // As said above.
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

/** The states within a state, in the order in which they were written. */
export const childrenOf = (node: AnyStateNode): ReadonlyArray<AnyStateNode> =>
  Object.values(node.states)

/** A state by its path, `present.enrollment.pending`; the chart itself has the empty one. */
export const pathOf = (node: AnyStateNode): string => node.path.join(".")

/** What a chart is, and each of its states by its path, as sentences. */
export interface Words {
  readonly told: string
  readonly states: Readonly<Record<string, string>>
}

/** Charts have no history states: these kinds are all. */
const kindOf = ({ type }: AnyStateNode): Chart["kind"] => (type === "history" ? "atomic" : type)

const statesOf = (node: AnyStateNode, words: Words | undefined): ReadonlyArray<ChartState> =>
  childrenOf(node).flatMap((child) => [
    {
      path: pathOf(child),
      name: child.key,
      parent: pathOf(node),
      kind: kindOf(child),
      is_initial: node.type === "compound" && node.initial?.target[0] === child,
      told: words?.states[pathOf(child)] ?? null,
    },
    ...statesOf(child, words),
  ])

/** The chart as data. Throws where a guard has no name, which a test keeps from happening. */
export const drawnChart = ({ id, root }: AnyStateMachine, words?: Words): Chart => ({
  id,
  told: words?.told ?? null,
  kind: kindOf(root),
  states: statesOf(root, words),
  ways: edgesOf(root).map(({ from, to, event, guard }) => ({
    from: pathOf(from),
    to: to === undefined ? null : pathOf(to),
    event,
    guard,
  })),
})
