/** Formats numbers, times and the composite for people. */
import type { Composite, Direction, Tally } from "./capital-pressure/api.ts"

/** Replaces hyphens before digits with minus signs, which are as wide as the plus sign. */
export const typeset = (text: string): string => text.replaceAll(/-(?=[\d.])/g, "\u2212")

/** "+0.42", "\u22121.27", "0.00". */
export const signed = (value: number, places = 2): string => {
  const rounded = Number(value.toFixed(places))
  const digits = Math.abs(rounded).toFixed(places)
  if (rounded === 0) return digits
  return `${rounded > 0 ? "+" : "\u2212"}${digits}`
}

/** A fraction as a signed percentage: "+4.7%". */
export const percent = (fraction: number): string => `${signed(fraction * 100, 1)}%`

const integer_format = new Intl.NumberFormat("en-US")
/** "16,176" */
export const count = (value: number): string => integer_format.format(value)

const price_format = new Intl.NumberFormat("en-US", {
  minimumFractionDigits: 2,
  maximumFractionDigits: 2,
})
/** USD with two places: "1,204.50". */
export const price = (value: number): string => price_format.format(value)

/** Formats a value of any magnitude: "6,712,345", "104.2", "0.0123". */
export const compact = (value: number): string => {
  const size = Math.abs(value)
  const places = size >= 10_000 ? 0 : size >= 100 ? 1 : size >= 1 ? 2 : 3
  const text = new Intl.NumberFormat("en-US", { maximumFractionDigits: places }).format(value)
  return typeset(text === "-0" ? "0" : text)
}

const compact_format = new Intl.NumberFormat("en-US", {
  notation: "compact",
  maximumSignificantDigits: 4,
})
/** A shorter form, for axes: "6.25M", "104.2". */
export const short = (value: number): string =>
  Math.abs(value) < 100_000 ? compact(value) : typeset(compact_format.format(value))

/** Turns text from the API into a sentence: a capital letter first, a full stop last. */
export const sentence = (text: string): string =>
  text === "" ? "" : `${text.charAt(0).toUpperCase()}${text.slice(1).replace(/\.?$/, ".")}`

const months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]

/** YYYY-MM-DD as "20 Nov 2026". */
export const date = (iso: string): string => {
  const [year = "", month = "", day = ""] = iso.slice(0, 10).split("-")
  return `${Number(day)} ${months[Number(month) - 1] ?? month} ${year}`
}

/** YYYY-MM-DD as "20 Nov", with the year unless it is that of `now`. */
export const shortDate = (iso: string, now: number): string => {
  const text = date(iso)
  return iso.startsWith(String(new Date(now).getUTCFullYear())) ? text.slice(0, -5) : text
}

/** Parses a time from the API (ISO 8601, UTC, without a zone) to epoch milliseconds. */
export const instantOf = (zoneless: string): number => Date.parse(`${zoneless}Z`)

const ms_of = { minute: 60_000, hour: 3_600_000, day: 86_400_000 } as const

const plural = (amount: number, unit: string) => `${amount} ${unit}${amount === 1 ? "" : "s"}`

/** Days between a date and now: "today", "1 day ago". */
export const daysAgo = (iso: string, now: number): string => {
  const days = Math.floor(now / ms_of.day) - Math.floor(Date.parse(iso) / ms_of.day)
  if (days <= 0) return "today"
  if (days < 100) return `${plural(days, "day")} ago`
  return `${plural(Math.round(days / 30.44), "month")} ago`
}

/** A time relative to now: "5 min ago", "in 3 h". */
export const relativeTime = (zoneless: string, now: number): string => {
  const elapsed = now - instantOf(zoneless)
  const size = Math.abs(elapsed)
  const distance =
    size < ms_of.hour
      ? `${Math.max(1, Math.round(size / ms_of.minute))} min`
      : size < 2 * ms_of.day
        ? `${Math.round(size / ms_of.hour)} h`
        : plural(Math.round(size / ms_of.day), "day")
  return elapsed >= 0 ? `${distance} ago` : `in ${distance}`
}

/** A time from the API as "20 Nov 2026, 22:00 UTC". */
export const time = (zoneless: string): string => `${date(zoneless)}, ${zoneless.slice(11, 16)} UTC`

/** A time in the user's time zone: "14:03". */
export const clock = (ms: number): string =>
  new Date(ms).toLocaleTimeString("en-GB", { hour: "2-digit", minute: "2-digit" })

const meanings: Readonly<Record<string, string>> = {
  flush: "Pressure is very low",
  easy: "Pressure is low",
  easing: "Pressure is easing",
  balanced: "Pressure is balanced",
  tightening: "Pressure is building",
  tight: "Pressure is high",
  strained: "Pressure is severe",
}

const votesOf = ({ bull, neutral, bear }: Tally) => bull + neutral + bear

/** The meaning of the composite in a few words. */
export const meaning = ({ z_label }: Composite): string =>
  meanings[z_label] ?? `Pressure reads ${z_label}`

/** "7 bear, 3 bull of 16" */
export const tallyText = ({ tally }: Composite): string =>
  `${tally.bear} bear, ${tally.bull} bull of ${votesOf(tally)}`

/** "16 of 24 metrics vote", "15 of 24 metrics vote, 1 is stale" */
export const votingText = (
  { metrics_total }: Composite,
  metrics: number,
  stale: number,
): string => {
  const of_all = metrics < metrics_total ? "" : ` of ${metrics}`
  const stale_text = stale === 0 ? "" : `, ${stale} ${stale === 1 ? "is" : "are"} stale`
  return `${metrics_total}${of_all} metrics vote${stale_text}`
}

/** The word of each vote. */
export const voteWord: Readonly<Record<Direction, string>> = {
  bull: "Bull",
  neutral: "Neutral",
  bear: "Bear",
}
