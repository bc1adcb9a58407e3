/** Formats times, sizes and ids for operators. */

const ms_of = { second: 1000, minute: 60_000, hour: 3_600_000, day: 86_400_000 } as const

/** A duration in its largest unit: "40 ms", "3 s", "12 min", "5 h", "2 days". */
export const duration = (ms: number): string => {
  const size = Math.max(0, ms)
  if (size < ms_of.second) return `${Math.round(size)} ms`
  if (size < ms_of.minute) return `${Math.floor(size / ms_of.second)} s`
  if (size < ms_of.hour) return `${Math.floor(size / ms_of.minute)} min`
  if (size < 2 * ms_of.day) return `${Math.floor(size / ms_of.hour)} h`
  return `${Math.floor(size / ms_of.day)} days`
}

/** Age of an RFC 3339 time: "3 s ago"; "now" below a second or in the future. */
export const ago = (at: string, now: number): string => {
  const ms = now - Date.parse(at)
  if (Number.isNaN(ms)) return at
  return ms < ms_of.second ? "now" : `${duration(ms)} ago`
}

const two = (value: number) => String(value).padStart(2, "0")
const months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]

/** "20 Nov 2026", in UTC. */
export const dayOf = (at: string): string => {
  const date = new Date(at)
  return `${date.getUTCDate()} ${months[date.getUTCMonth()]} ${date.getUTCFullYear()}`
}

/** "14:03:07.250", in UTC; milliseconds show the order within a second. */
export const timeOf = (at: string): string => {
  const date = new Date(at)
  const clock = [date.getUTCHours(), date.getUTCMinutes(), date.getUTCSeconds()].map(two).join(":")
  return `${clock}.${String(date.getUTCMilliseconds()).padStart(3, "0")}`
}

/** "20 Nov 2026, 14:03:07.250 UTC" */
export const timestamp = (at: string): string => `${dayOf(at)}, ${timeOf(at)} UTC`

const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"] as const

/** "1.5 GiB", in powers of 1024. */
export const bytes = (count: number): string => {
  let size = count
  let unit = 0
  while (size >= 1024 && unit < units.length - 1) {
    size /= 1024
    unit++
  }
  const places = unit === 0 || size >= 100 ? 0 : 1
  return `${size.toFixed(places)} ${units[unit]}`
}

/** A fraction as a percentage: "16.7%". */
export const percentage = (part: number): string => `${(part * 100).toFixed(1)}%`

/** The end of the id, because the start of a UUIDv7 is its time. */
export const shortId = (id: string): string => (id.length > 14 ? `\u2026${id.slice(-10)}` : id)

/** "provisioning_network" as "Provisioning network". */
export const readable = (name: string): string => {
  const text = name.replaceAll(/[_-]/g, " ")
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}`
}

/** "1 job", "2 jobs". */
export const plural = (amount: number, noun: string): string =>
  `${amount.toLocaleString("en-US")} ${noun}${amount === 1 ? "" : "s"}`
