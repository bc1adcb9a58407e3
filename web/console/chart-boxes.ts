/** Lays out a state chart as nested boxes and links between them. Pure. */
import type { Chart, ChartState, ChartTransition } from "./api.ts"
import { layeredLayout, type Point } from "./chart-layout.ts"

/** Sizes in CSS pixels. Event names are in a monospaced font. */
const letter = 6.1
const name_letter = 7.4
const line = 14
const head = 26
const padding = 14
const dot = 14
const region_gap = 16

/** Transitions of this state that stay in it. */
const staysAt = (chart: Chart, path: string) =>
  chart.ways.filter((way) => way.from === path && (way.to === null || way.to === path))

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

const isBeginning = ({ name }: ChartState) => name === "absent"

/** The distinct events of the transitions, one line each. */
export const eventsOf = (ways: readonly ChartTransition[]): readonly string[] => [
  ...new Set(ways.map(({ event }) => event)),
]

const longest = (texts: readonly string[]) => Math.max(0, ...texts.map((text) => text.length))

/** The child that contains the path, or is it; undefined if none does. */
const childWith = (children: readonly ChartState[], path: string) =>
  children.find((child) => path === child.path || path.startsWith(`${child.path}.`))

const moved = (drawn: DrawnChart, x: number, y: number): Pick<DrawnChart, "boxes" | "links"> => ({
  boxes: drawn.boxes.map((box) => ({ ...box, x: box.x + x, y: box.y + y })),
  links: drawn.links.map(({ transitions: ways, points, text: words }) => ({
    ways,
    points: points.map((point) => ({ x: point.x + x, y: point.y + y })),
    words: { x: words.x + x, y: words.y + y },
  })),
})

interface Sized {
  readonly state: ChartState
  readonly inside: DrawnChart
  readonly self_transitions: readonly ChartTransition[]
  readonly width: number
  readonly height: number
}

const sized = (chart: Chart, state: ChartState): Sized => {
  const stays = staysAt(chart, state.path)
  const inside = drawnWithin(chart, state.path, state.kind)
  if (isBeginning(state)) return { state, inside, self_transitions: stays, width: dot, height: dot }
  const lines = eventsOf(stays)
  const own = Math.max(state.name.length * name_letter, longest(lines) * letter) + 2 * padding
  return {
    state,
    inside,
    self_transitions: stays,
    width: Math.max(own, inside.width === 0 ? 0 : inside.width + 2 * padding),
    height: head + lines.length * line + (inside.height === 0 ? 4 : inside.height + padding + 6),
  }
}

const boxAt = (one: Sized, { x, y }: Point): Pick<DrawnChart, "boxes" | "links"> => {
  const { state, inside, self_transitions: stays, width, height } = one
  const [left, top] = [x - width / 2, y - height / 2]
  const below = head + eventsOf(stays).length * line + 4
  const within = moved(inside, left + (width - inside.width) / 2, top + below)
  return {
    boxes: [{ state, self_transitions: stays, x: left, y: top, width, height }, ...within.boxes],
    links: within.links,
  }
}

/** Regions have no transitions between them, so they are placed side by side. */
const beside = (all: readonly Sized[]): DrawnChart => {
  const height = Math.max(0, ...all.map((one) => one.height))
  let x = 0
  const parts = all.map((one) => {
    const part = boxAt(one, { x: x + one.width / 2, y: one.height / 2 })
    x += one.width + region_gap
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
const between = (chart: Chart, children: readonly ChartState[]) => {
  const pairs = new Map<string, { from: string; to: string; ways: ChartTransition[] }>()
  for (const way of chart.ways) {
    const from = childWith(children, way.from)
    const to = way.to === null ? undefined : childWith(children, way.to)
    if (from === undefined || to === undefined || from === to) continue
    const id = `${from.path} ${to.path}`
    const pair = pairs.get(id) ?? { from: from.path, to: to.path, ways: [] }
    pair.ways.push(way)
    pairs.set(id, pair)
  }
  return pairs
}

function drawnWithin(chart: Chart, path: string, kind: Chart["kind"]): DrawnChart {
  const children = chart.states.filter(({ parent }) => parent === path)
  if (children.length === 0) return nothing
  const all = children.map((state) => sized(chart, state))
  if (kind === "parallel") return beside(all)
  // The initial state first: the layers start there.
  const first = all.toSorted(
    (one, other) => Number(other.state.is_initial) - Number(one.state.is_initial),
  )
  const pairs = between(chart, children)
  const boxes = first.map(({ state, width, height }) => ({ id: state.path, width, height }))
  const links = [...pairs].map(([id, { from, to, ways }]) => {
    const words = eventsOf(ways)
    return { id, from, to, width: longest(words) * letter, height: words.length * line }
  })
  const layout = layeredLayout(boxes, links)
  const parts = first.map((one) => boxAt(one, layout.boxes.get(one.state.path) ?? { x: 0, y: 0 }))
  return {
    boxes: parts.flatMap((part) => part.boxes),
    links: [
      ...[...pairs].map(([id, { ways }]) => ({
        ways,
        points: layout.links.get(id) ?? [],
        words: layout.texts.get(id) ?? { x: 0, y: 0 },
      })),
      ...parts.flatMap((part) => part.links),
    ],
    width: layout.width,
    height: layout.height,
  }
}

/** The layout of the whole chart; its origin is the upper left corner. */
export const layoutChart = (chart: Chart): DrawnChart => drawnWithin(chart, "", chart.kind)

export const line_height = line
export const head_height = head
