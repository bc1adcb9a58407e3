/** Draws a state chart and highlights the active states and the last transitions. */
import { h, s } from "../element.ts"
import type { Chart, ChartTransition } from "./api.ts"
import {
  type DrawnBox,
  type DrawnChart,
  type DrawnLink,
  eventsOf,
  head_height,
  layoutChart,
  line_height,
} from "./chart-boxes.ts"
import type { Point } from "./chart-layout.ts"
import { readable } from "./format.ts"

const margin = 10

/** A curve that is vertical at each point. */
const curve = (points: readonly Point[]): string => {
  const [first, ...rest] = points
  if (first === undefined) return ""
  let path = `M${first.x.toFixed(1)} ${first.y.toFixed(1)}`
  let { x, y } = first
  for (const next of rest) {
    const half = ((y + next.y) / 2).toFixed(1)
    const [from, to, end] = [x, next.x, next.y].map((value) => value.toFixed(1))
    path += `C${from} ${half} ${to} ${half} ${to} ${end}`
    ;({ x, y } = next)
  }
  return path
}

/** An arrowhead that points down or up. */
const arrowhead = (points: readonly Point[]) => {
  const end = points.at(-1)
  const before = points.at(-2)
  if (end === undefined || before === undefined) return undefined
  const back = before.y < end.y ? -7 : 7
  const [x, y] = [end.x, end.y]
  return s("path", { class: "head", d: `M${x} ${y}l-4 ${back}h8Z` })
}

const guardsOf = (transitions: readonly ChartTransition[]) =>
  transitions
    .map(
      ({ from, event, guard }) =>
        `${event} (in ${from || "any state"})${guard === "" ? "" : `, where ${guard}`}`,
    )
    .join("\n")

const isHighlighted = (
  transitions: readonly ChartTransition[],
  event: string,
  highlighted_transitions: ReadonlySet<ChartTransition>,
) =>
  transitions.some(
    (transition) => transition.event === event && highlighted_transitions.has(transition),
  )

const eventText = (
  transitions: readonly ChartTransition[],
  event: string,
  at: Readonly<Record<string, string | number>>,
  highlighted_transitions: ReadonlySet<ChartTransition>,
) =>
  s(
    "text",
    {
      class: isHighlighted(transitions, event, highlighted_transitions) ? "event lit" : "event",
      ...at,
    },
    event,
  )

const linkShape = (
  { transitions, points }: DrawnLink,
  highlighted_transitions: ReadonlySet<ChartTransition>,
) => {
  const is_highlighted = transitions.some((transition) => highlighted_transitions.has(transition))
  return s(
    "g",
    { class: is_highlighted ? "link lit" : "link" },
    s("path", { class: "line", d: curve(points) }),
    arrowhead(points),
  )
}

const linkText = (
  { transitions, text }: DrawnLink,
  highlighted_transitions: ReadonlySet<ChartTransition>,
) => {
  const events = eventsOf(transitions)
  const top = text.y - ((events.length - 1) * line_height) / 2 + 4
  return s(
    "g",
    {},
    s("title", {}, guardsOf(transitions)),
    events.map((event, index) =>
      eventText(
        transitions,
        event,
        { x: text.x, y: top + index * line_height, "text-anchor": "middle" },
        highlighted_transitions,
      ),
    ),
  )
}

const boxShape = (
  box: DrawnBox,
  active: ReadonlySet<string>,
  highlighted_transitions: ReadonlySet<ChartTransition>,
) => {
  const { state, x, y, width, height, self_transitions } = box
  const highlighted = active.has(state.path) ? " lit" : ""
  const title = s("title", {}, state.description ?? readable(state.name))
  if (state.name === "absent") {
    const radius = width / 2
    return s(
      "g",
      { class: `state beginning${highlighted}` },
      title,
      s("circle", { cx: x + radius, cy: y + radius, r: radius }),
    )
  }
  const is_outer = height > head_height + 4 + eventsOf(self_transitions).length * line_height + 6
  return s(
    "g",
    { class: `state ${state.kind}${is_outer ? " outer" : ""}${highlighted}` },
    title,
    s("rect", { x, y, width, height, rx: 6 }),
    state.kind === "final" &&
      s("rect", {
        class: "inner",
        x: x + 3,
        y: y + 3,
        width: width - 6,
        height: height - 6,
        rx: 4,
      }),
    s("text", { class: "name", x: x + width / 2, y: y + 18, "text-anchor": "middle" }, state.name),
    eventsOf(self_transitions).map((event, index) =>
      eventText(
        self_transitions,
        event,
        { x: x + width / 2, y: y + head_height + 8 + index * line_height, "text-anchor": "middle" },
        highlighted_transitions,
      ),
    ),
  )
}

const layouts = new WeakMap<Chart, DrawnChart>()

/** Caches the layout: only the highlights change between commits. */
const layoutOf = (chart: Chart): DrawnChart => {
  const layout = layouts.get(chart) ?? layoutChart(chart)
  layouts.set(chart, layout)
  return layout
}

export interface Highlights {
  readonly active: readonly string[]
  readonly transitions: ReadonlySet<ChartTransition>
}

/** The picture, with a text alternative. */
export const chartPicture = (
  chart: Chart,
  { active, transitions: highlighted_transitions }: Highlights,
): HTMLElement => {
  const { boxes, links, width, height } = layoutOf(chart)
  const highlighted = new Set(active)
  const transitions = [...highlighted_transitions].map(({ event }) => event)
  const about =
    `State chart of ${chart.id}. Current state: ${active.join(", ") || "none"}` +
    `${transitions.length === 0 ? "" : `; last transition: ${transitions.join(", ")}`}.`
  const outer = { width: width + 2 * margin, height: height + 2 * margin }
  return h(
    "div",
    {
      class: "chart-scroll",
      tabindex: 0,
      role: "region",
      "aria-label": "State chart",
      "data-key": "chart",
    },
    s(
      "svg",
      {
        class: "chart",
        role: "img",
        "aria-label": about,
        ...outer,
        viewBox: `${-margin} ${-margin} ${outer.width} ${outer.height}`,
      },
      boxes.map((box) => boxShape(box, highlighted, highlighted_transitions)),
      links.map((link) => linkShape(link, highlighted_transitions)),
      links.map((link) => linkText(link, highlighted_transitions)),
    ),
  )
}
