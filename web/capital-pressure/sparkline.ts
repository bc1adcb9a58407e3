/** A sparkline of a few dozen values, with a dot at the newest. */

import { h, s } from "../element.ts"
import type { Direction } from "./api.ts"

const size = { width: 96, height: 28, margin: 3 } as const

/** An SVG path through the values, from left to right, with the maximum at the top. */
export const pathOf = (values: readonly number[], width: number, height: number): string => {
  const low = Math.min(...values)
  const range = Math.max(...values) - low
  const step = values.length > 1 ? width / (values.length - 1) : 0
  return values
    .map((value, index) => {
      const x = index * step
      const y = range === 0 ? height / 2 : height - ((value - low) / range) * height
      return `${index === 0 ? "M" : "L"}${x.toFixed(1)} ${y.toFixed(1)}`
    })
    .join("")
}

/** Empty for fewer than two values. Hidden from screen readers: the values are in text nearby. */
export const sparkline = (values: readonly number[], tone: Direction = "neutral"): Element => {
  if (values.length < 2) return h("span", { class: "sparkline" })
  const { width, height, margin } = size
  const path = pathOf(values, width - 2 * margin, height - 2 * margin)
  const last = /([\d.]+) ([\d.]+)$/.exec(path)
  return s(
    "svg",
    { class: `sparkline ${tone}`, viewBox: `0 0 ${width} ${height}`, "aria-hidden": "true" },
    s(
      "g",
      { transform: `translate(${margin} ${margin})` },
      s("path", { class: "line", d: path }),
      s("circle", { class: "dot", cx: last?.[1] ?? 0, cy: last?.[2] ?? 0, r: 2.2 }),
    ),
  )
}
