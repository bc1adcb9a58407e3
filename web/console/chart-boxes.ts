/** Lays out a state chart as nested boxes and links between them. Pure. */
import type { Chart, ChartState, ChartTransition } from "./api.ts"
import { layeredLayout, type Point } from "./chart-layout.ts"

/** Sizes in CSS pixels. Event names are in a monospaced font. */
const letter_width = 6.1
const name_letter_width = 7.4
const line_size = 14
const head_size = 26
const padding = 14
const dot = 14
const region_gap = 16

/** Transitions of this state that stay in it. */
const selfTransitions = (chart: Chart, path: string) =>
  chart.transitions.filter(
    (transition) => transition.from === path && (transition.to === null || transition.to === path),
  )

export interface DrawnBox {
  readonly state: ChartState
  /** Upper left corner. */
  readonly x: number
  readonly y: number
  readonly width: number
  readonly height: number
  /** Transitions that stay in the state, listed by event. */
  readonly self_transitions: readonly ChartTransition[]
}

export interface DrawnLink {
  /** Transitions between these two states: one arrow with a line of text per event. */
  readonly transitions: readonly ChartTransition[]
  readonly points: readonly Point[]
  /** Centre of the text. */
  readonly text: Point
}

export interface DrawnChart {
  readonly boxes: readonly DrawnBox[]
  readonly links: readonly DrawnLink[]
  readonly width: number
  readonly height: number
}

const nothing: DrawnChart = { boxes: [], links: [], width: 0, height: 0 }

const isInitial = ({ name }: ChartState) => name === "absent"

/** The distinct events of the transitions, one line each. */
export const eventsOf = (transitions: readonly ChartTransition[]): readonly string[] => [
  ...new Set(transitions.map(({ event }) => event)),
]

const longestText = (texts: readonly string[]) => Math.max(0, ...texts.map((text) => text.length))

/** The child at this path or above it; undefined if there is none. */
const childWith = (children: readonly ChartState[], path: string) =>
  children.find((child) => path === child.path || path.startsWith(`${child.path}.`))

const shifted = (drawn: DrawnChart, x: number, y: number): Pick<DrawnChart, "boxes" | "links"> => ({
  boxes: drawn.boxes.map((box) => ({ ...box, x: box.x + x, y: box.y + y })),
  links: drawn.links.map(({ transitions, points, text }) => ({
    transitions,
    points: points.map((point) => ({ x: point.x + x, y: point.y + y })),
    text: { x: text.x + x, y: text.y + y },
  })),
})

interface SizedState {
  readonly state: ChartState
  readonly inside: DrawnChart
  readonly self_transitions: readonly ChartTransition[]
  readonly width: number
  readonly height: number
}

const sizedState = (chart: Chart, state: ChartState): SizedState => {
  const self_transitions = selfTransitions(chart, state.path)
  const inside = layoutWithin(chart, state.path, state.kind)
  if (isInitial(state)) return { state, inside, self_transitions, width: dot, height: dot }
  const lines = eventsOf(self_transitions)
  const own_width =
    Math.max(state.name.length * name_letter_width, longestText(lines) * letter_width) + 2 * padding
  return {
    state,
    inside,
    self_transitions,
    width: Math.max(own_width, inside.width === 0 ? 0 : inside.width + 2 * padding),
    height:
      head_size +
      lines.length * line_size +
      (inside.height === 0 ? 4 : inside.height + padding + 6),
  }
}

const boxAt = (box: SizedState, { x, y }: Point): Pick<DrawnChart, "boxes" | "links"> => {
  const { state, inside, self_transitions, width, height } = box
  const [left, top] = [x - width / 2, y - height / 2]
  const below = head_size + eventsOf(self_transitions).length * line_size + 4
  const within = shifted(inside, left + (width - inside.width) / 2, top + below)
  return {
    boxes: [{ state, self_transitions, x: left, y: top, width, height }, ...within.boxes],
    links: within.links,
  }
}

/** Regions have no transitions between them, so they are placed side by side. */
const sideBySide = (all: readonly SizedState[]): DrawnChart => {
  const height = Math.max(0, ...all.map((box) => box.height))
  let x = 0
  const parts = all.map((box) => {
    const part = boxAt(box, { x: x + box.width / 2, y: box.height / 2 })
    x += box.width + region_gap
    return part
  })
  return {
    boxes: parts.flatMap(({ boxes }) => boxes),
    links: parts.flatMap(({ links }) => links),
    width: Math.max(0, x - region_gap),
    height,
  }
}

/** Transitions between different children, grouped by pair of children. */
const transitionsBetween = (chart: Chart, children: readonly ChartState[]) => {
  const pairs = new Map<string, { from: string; to: string; transitions: ChartTransition[] }>()
  for (const transition of chart.transitions) {
    const from = childWith(children, transition.from)
    const to = transition.to === null ? undefined : childWith(children, transition.to)
    if (from === undefined || to === undefined || from === to) continue
    const id = `${from.path} ${to.path}`
    const pair = pairs.get(id) ?? { from: from.path, to: to.path, transitions: [] }
    pair.transitions.push(transition)
    pairs.set(id, pair)
  }
  return pairs
}

function layoutWithin(chart: Chart, path: string, kind: Chart["kind"]): DrawnChart {
  const children = chart.states.filter(({ parent }) => parent === path)
  if (children.length === 0) return nothing
  const all = children.map((state) => sizedState(chart, state))
  if (kind === "parallel") return sideBySide(all)
  // The initial state first: the layers start there.
  const first = all.toSorted(
    (box, other) => Number(other.state.is_initial) - Number(box.state.is_initial),
  )
  const pairs = transitionsBetween(chart, children)
  const boxes = first.map(({ state, width, height }) => ({ id: state.path, width, height }))
  const links = [...pairs].map(([id, { from, to, transitions }]) => {
    const lines = eventsOf(transitions)
    const width = longestText(lines) * letter_width
    return { id, from, to, width, height: lines.length * line_size }
  })
  const layout = layeredLayout(boxes, links)
  const parts = first.map((box) => boxAt(box, layout.boxes.get(box.state.path) ?? { x: 0, y: 0 }))
  return {
    boxes: parts.flatMap((part) => part.boxes),
    links: [
      ...[...pairs].map(([id, { transitions }]) => ({
        transitions,
        points: layout.links.get(id) ?? [],
        text: layout.texts.get(id) ?? { x: 0, y: 0 },
      })),
      ...parts.flatMap((part) => part.links),
    ],
    width: layout.width,
    height: layout.height,
  }
}

/** The layout of the whole chart; its origin is the upper left corner. */
export const layoutChart = (chart: Chart): DrawnChart => layoutWithin(chart, "", chart.kind)

export const line_height = line_size
export const head_height = head_size
