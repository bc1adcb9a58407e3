/**
 * Formatting: numbers as the dashboard prints them, with their labels and CSS classes.
 *
 * Source: market facts, A2.4 and A2.5.
 */
import type { Format, Metric, VoteDirection } from "#schemas/capital-pressure/metric.ts"

interface Writing {
  readonly decimals: number
  /** Printed after the number. */
  readonly unit: string
  /** Whether a plus sign is printed too. */
  readonly is_signed: boolean
  /** Format of a change, if it differs from the value's. */
  readonly change?: { readonly factor: number; readonly decimals: number; readonly unit: string }
}

const writings: Readonly<Record<Format, Writing>> = {
  spread: {
    decimals: 2,
    unit: "%",
    is_signed: false,
    change: { factor: 100, decimals: 0, unit: " bp" },
  },
  percent: { decimals: 2, unit: "%", is_signed: false },
  points: { decimals: 2, unit: " pp", is_signed: true },
  ratio: { decimals: 2, unit: "", is_signed: false },
  index: { decimals: 2, unit: "", is_signed: false },
  basis_points: { decimals: 0, unit: " bp", is_signed: false },
  growth: { decimals: 1, unit: "%", is_signed: true },
}

/** Whether the number rounds to zero at this many decimals. */
const isZero = (number: number, decimals: number) => Number(number.toFixed(decimals)) === 0

/** The number at this many decimals; never "-0.00". */
const fixed = (number: number, decimals: number) =>
  (isZero(number, decimals) ? 0 : number).toFixed(decimals)

/** The same with its sign: "+0.42", "-0.42", "+0.00". */
export const signed = (number: number, decimals: number): string =>
  number >= 0 || isZero(number, decimals) ? `+${fixed(number, decimals)}` : fixed(number, decimals)

/** An indicator with its unit: "2.92%", "+0.41 pp", "0.88", "94 bp", "+4.7%". */
export const valueText = (format: Format, value: number): string => {
  const { decimals, unit, is_signed } = writings[format]
  return `${is_signed ? signed(value, decimals) : fixed(value, decimals)}${unit}`
}

export interface Delta {
  readonly delta: string
  readonly delta_class: VoteDirection
}

/**
 * The signed change of an indicator since the previous observation (NaN: none) in its unit, for a
 * spread in basis points: "+7 bp", "unch", "n/a". Bear is a change towards pressure; neutral is a
 * change that rounds to zero.
 */
export const deltaOf = (
  { format, direction_kind }: Pick<Metric, "format" | "direction_kind">,
  change: number,
): Delta => {
  if (Number.isNaN(change)) return { delta: "n/a", delta_class: "neutral" }
  const { factor, decimals, unit } = { factor: 1, ...(writings[format].change ?? writings[format]) }
  const scaled = change * factor
  if (isZero(scaled, decimals)) return { delta: "unch", delta_class: "neutral" }
  const is_pressure = scaled > 0 === (direction_kind === "higher_bearish")
  return { delta: `${signed(scaled, decimals)}${unit}`, delta_class: is_pressure ? "bear" : "bull" }
}

interface Scale {
  /** Boundaries between the labels; the first one ends the neutral range. */
  readonly steps: readonly [number, number, number]
  readonly near: string
  readonly bull: readonly [string, string, string]
  readonly bear: readonly [string, string, string]
}

const scales: Readonly<Record<"metric" | "composite", Scale>> = {
  metric: {
    steps: [0.5, 1, 2],
    near: "near normal",
    bull: ["mildly easy", "easy", "very easy"],
    bear: ["mildly tight", "tight", "very tight"],
  },
  // Narrower, because a mean of many metrics moves less than each of them.
  composite: {
    steps: [0.25, 0.75, 1.5],
    near: "balanced",
    bull: ["easing", "easy", "flush"],
    bear: ["tightening", "tight", "strained"],
  },
}

export interface Label {
  readonly label: string
  readonly class: VoteDirection
}

/** Label and class of a pressure, of one metric or of the composite. */
export const labelOf = (kind: keyof typeof scales, pressure: number): Label => {
  const scale = scales[kind]
  const strength = scale.steps.filter((step) => Math.abs(pressure) >= step).length
  if (strength === 0) return { label: scale.near, class: "neutral" }
  const side = pressure > 0 ? "bear" : "bull"
  return { label: scale[side][strength - 1] ?? scale.near, class: side }
}

const z_decimals = 4
const fraction_decimals = 6

const rounded = (number: number, decimals: number) => {
  const factor = 10 ** decimals
  // Adding zero turns -0 into 0, because JSON has no -0.
  return Math.round(number * factor) / factor + 0
}

/** A z-score rounded for output; null for NaN. */
export const roundedZ = (z: number): number | null =>
  Number.isNaN(z) ? null : rounded(z, z_decimals)

/** An indicator or a fraction rounded for output. */
export const roundedFraction = (fraction: number): number => rounded(fraction, fraction_decimals)

/** The dashboard's times have no zone suffix: they are in UTC. Source: document 3 §2 A. */
export const zoneless = (instant: string | null): string | null =>
  instant === null ? null : instant.replace(/Z$/, "")
