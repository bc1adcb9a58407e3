/**
 * Cron evaluated minute by minute: the test oracle for schedules. It uses only the local time of
 * each minute, and Vixie cron's rules for clock changes.
 */

const minute_ms = 60_000

/** A time window in a zone, in epoch milliseconds. */
export interface Walk {
  readonly zone: string
  /** Exclusive, because the next tick is strictly after a time. */
  readonly from: number
  /** Exclusive. */
  readonly to: number
  /** For each minute from `from` on: the local time, in minutes, as if it were UTC. */
  readonly locals: ReadonlyArray<number>
}

export const localMinutes = (zone: string, from: number, to: number): Walk => {
  const format = new Intl.DateTimeFormat("sv-SE", {
    timeZone: zone,
    year: "numeric",
    month: "2-digit",
    day: "2-digit",
    hour: "2-digit",
    minute: "2-digit",
  })
  const locals = Array.from({ length: (to - from) / minute_ms }, (_, n) => {
    const local = format.format(new Date(from + n * minute_ms))
    return Date.parse(`${local.replace(" ", "T")}Z`) / minute_ms
  })
  return { zone, from, to, locals }
}

const names = "JAN FEB MAR APR MAY JUN JUL AUG SEP OCT NOV DEC SUN MON TUE WED THU FRI SAT".split(
  " ",
)
const months_count = 12

const numberOf = (text: string) => {
  const index = names.indexOf(text)
  if (index < 0) return Number(text)
  return index < months_count ? index + 1 : index - months_count
}

const matches = (field: string, value: number, min: number, max: number) =>
  field.split(",").some((part) => {
    const [range = "", step = "1"] = part.split("/")
    const [low = "", high = low] = range === "*" ? [String(min), String(max)] : range.split("-")
    const from = numberOf(low)
    return value >= from && value <= numberOf(high) && (value - from) % Number(step) === 0
  })

const firesAt = (expression: string) => {
  const [minute = "", hour = "", day = "", month = "", weekday = ""] = expression.split(" ")
  return (local: number) => {
    const date = new Date(local * minute_ms)
    const is_day = matches(day, date.getUTCDate(), 1, 31)
    const week = date.getUTCDay()
    const is_weekday = matches(weekday, week, 0, 7) || (week === 0 && matches(weekday, 7, 0, 7))
    const either = day !== "*" && weekday !== "*"
    return (
      matches(minute, date.getUTCMinutes(), 0, 59) &&
      matches(hour, date.getUTCHours(), 0, 23) &&
      matches(month, date.getUTCMonth() + 1, 1, 12) &&
      (either ? is_day || is_weekday : is_day && is_weekday)
    )
  }
}

/** All ticks in the window, in epoch milliseconds. */
export const cronTicks = (expression: string, { from, locals }: Walk): ReadonlyArray<number> => {
  const [minute = "", hour = ""] = expression.split(" ")
  const is_fixed = !/[*/]/.test(minute + hour)
  const fires = firesAt(expression)
  const ticks: Array<number> = []
  let reached = locals[0] ?? 0
  for (const [n, local] of locals.entries()) {
    if (n === 0) continue
    const skipped = Array.from(
      { length: Math.max(0, local - reached - 1) },
      (_, i) => local - 1 - i,
    )
    const is_first_pass = local > reached
    const now = fires(local) && (is_first_pass || !is_fixed)
    if (now || (is_fixed && skipped.some(fires))) ticks.push(from + n * minute_ms)
    reached = Math.max(reached, local)
  }
  return ticks
}
