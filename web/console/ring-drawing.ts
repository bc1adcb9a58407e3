/** Draws the ring of blob nodes: the share of each node outside, its fill level inside. */
import { h, s } from "../element.ts"
import type { ClusterNode } from "./api.ts"
import { bytes, percentage, shortId } from "./format.ts"
import type { Tone } from "./parts.ts"

export const node_tones: Readonly<Record<string, Tone>> = {
  active: "good",
  joining: "waiting",
  leaving: "busy",
  offline: "bad",
}

/** Sizes in units of the picture. */
const size = 420
const middle = size / 2
const outer = 150
const inner = 118
const fill_outer = 110
const fill_inner = 84
/** Above this number, labels would overlap; the table has the same data. */
const labels_max = 16
/** Gap between two nodes, in turns. */
const gap = 0.004

const point = (turn: number, radius: number) => {
  const angle = (turn - 0.25) * 2 * Math.PI
  const x = middle + radius * Math.cos(angle)
  const y = middle + radius * Math.sin(angle)
  return `${x.toFixed(2)} ${y.toFixed(2)}`
}

/** The path of a ring segment between two turns; 0 is at the top, clockwise. */
export const arc = (from: number, to: number, radius: number, hole: number): string => {
  // A full turn would end at its start and draw nothing.
  const end = Math.min(to, from + 0.9999)
  const large = end - from > 0.5 ? 1 : 0
  return [
    `M${point(from, radius)}`,
    `A${radius} ${radius} 0 ${large} 1 ${point(end, radius)}`,
    `L${point(end, hole)}`,
    `A${hole} ${hole} 0 ${large} 0 ${point(from, hole)}Z`,
  ].join("")
}

/** A node and its position in turns. */
export interface Slice {
  readonly node: ClusterNode
  readonly from: number
  readonly to: number
}

/** Minimum width of a node, in turns; nodes outside the ring have this width. */
const off_ring = 0.07

export const slicesOf = (nodes: readonly ClusterNode[]): readonly Slice[] => {
  const widths = nodes.map(({ ring_share }) => Math.max(ring_share, off_ring))
  const total = widths.reduce((sum, width) => sum + width, 0)
  let at = 0
  return nodes.map((node, index) => {
    const from = at
    at += (widths[index] ?? 0) / total
    return { node, from, to: at }
  })
}

const usedPart = ({ used_bytes, capacity_bytes }: ClusterNode) => {
  const capacity = Number(capacity_bytes)
  return capacity === 0 ? 0 : Math.min(1, Number(used_bytes) / capacity)
}

const label = ({ node, from, to }: Slice) => {
  const turn = (from + to) / 2
  const [x = "0", y = "0"] = point(turn, outer + 14).split(" ")
  const anchor = Math.abs(turn - 0.5) < 0.04 || turn < 0.04 || turn > 0.96
  const side = anchor ? "middle" : turn < 0.5 ? "start" : "end"
  // Labels have two lines: above the top of the ring, and below its bottom.
  const down = 2 - 10 * Math.cos(turn * 2 * Math.PI)
  return s(
    "text",
    { class: "label", x, y: (Number(y) + down).toFixed(2), "text-anchor": side },
    s("tspan", {}, shortId(node.node_id)),
    s(
      "tspan",
      { class: "part", x, dy: "1.15em" },
      node.ring_share === 0 ? node.state : percentage(node.ring_share),
    ),
  )
}

const slice = (one: Slice, is_labelled: boolean) => {
  const { node, from, to } = one
  const half = to - from > 3 * gap ? gap / 2 : 0
  const tone = node_tones[node.state] ?? "over"
  const [begin, end] = [from + half, to - half]
  const used = usedPart(node)
  const description =
    `${node.node_id}, ${node.state}: ${percentage(node.ring_share)} of the ring, ` +
    `${bytes(Number(node.used_bytes))} of ${bytes(Number(node.capacity_bytes))} used`
  return s(
    "g",
    { class: `slice ${tone}${node.ring_share === 0 ? " off" : ""}` },
    s("title", {}, description),
    s("path", { class: "part", d: arc(begin, end, outer, inner) }),
    s("path", { class: "room", d: arc(begin, end, fill_outer, fill_inner) }),
    used > 0 &&
      s("path", {
        class: "used",
        d: arc(begin, begin + (end - begin) * used, fill_outer, fill_inner),
      }),
    is_labelled && label(one),
  )
}

/** The picture, with a text alternative; the table has the details. */
export const ringPicture = (nodes: readonly ClusterNode[], version: string): HTMLElement => {
  const active = nodes.filter(({ state }) => state === "active").length
  return h(
    "figure",
    { class: "ring-picture", "data-key": "picture" },
    s(
      "svg",
      {
        viewBox: `-70 10 ${size + 140} ${size - 20}`,
        role: "img",
        "aria-label": `A ring of ${nodes.length} nodes, ${active} of them active.`,
      },
      slicesOf(nodes).map((one) => slice(one, nodes.length <= labels_max)),
      s(
        "text",
        { class: "centre", x: middle, y: middle - 4, "text-anchor": "middle" },
        `${active} active`,
      ),
      s(
        "text",
        { class: "centre small", x: middle, y: middle + 16, "text-anchor": "middle" },
        `ring version ${version}`,
      ),
    ),
    h("figcaption", { class: "note" }, "Outer ring: share of the ring. Inner ring: used capacity."),
  )
}
