/** Formats values for people. */
import { isList, isObject, type Json, toJson } from "#cli/client/json.ts"

/** Replaces control characters: stored text must not control the reader's terminal. */
export const printable = (text: string) => text.replaceAll(/\p{Cc}|\p{Cf}/gu, "?")

const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"]

/** `1.5 GiB`: at most three digits, except for plain bytes. */
export const formatBytes = (count: number) => {
  let value = count
  let unit = 0
  while (value >= 1024 && unit + 1 < units.length) {
    value /= 1024
    unit++
  }
  const digits = unit === 0 || value >= 100 ? 0 : 1
  return `${value.toFixed(digits)} ${units[unit]}`
}

const pad = (count: number) => String(count).padStart(2, "0")

/** `0:07`, `12:34`, `1:02:03`. */
export const formatDuration = (seconds: number) => {
  const whole = Math.max(0, Math.round(seconds))
  const [hours, minutes] = [Math.floor(whole / 3600), Math.floor(whole / 60) % 60]
  const end = pad(whole % 60)
  return hours === 0 ? `${minutes}:${end}` : `${hours}:${pad(minutes)}:${end}`
}

const minute_s = 60
const hour_s = 60 * minute_s
const day_s = 24 * hour_s

/** `12s`, `5m`, `3h`, `12d`: the largest unit, rounded down. */
export const formatAge = (seconds: number) => {
  const whole = Math.max(0, Math.floor(seconds))
  if (whole < minute_s) return `${whole}s`
  if (whole < hour_s) return `${Math.floor(whole / minute_s)}m`
  return whole < day_s ? `${Math.floor(whole / hour_s)}h` : `${Math.floor(whole / day_s)}d`
}

const instant = /^(\d{4}-\d\d-\d\d)T(\d\d:\d\d:\d\d)(?:\.\d+)?Z$/
const is_bytes = /(^|_)bytes(_|$)|^size$/

/** Formats a value for a table: times to the second, bytes with units, a dash if empty. */
export const formatValue = (name: string, value: Json | undefined): string => {
  if (value === null || value === undefined || value === "") return "-"
  if (typeof value === "boolean") return value ? "yes" : "no"
  if (typeof value === "string") return printable(value.replace(instant, "$1 $2Z"))
  if (name === "progress" && typeof value === "number") return `${value}%`
  if (typeof value === "number" && is_bytes.test(name)) return formatBytes(value)
  if (typeof value === "bigint") return String(value)
  if (typeof value === "number") {
    return Number.isInteger(value) ? String(value) : String(Number(value.toFixed(4)))
  }
  if (isList(value) && value.every((one) => !isObject(one) && !isList(one))) {
    return value.length === 0 ? "-" : value.map((one) => formatValue("", one)).join(", ")
  }
  if (isObject(value) && Object.values(value).every((one) => !isObject(one) && !isList(one))) {
    const pairs = Object.entries(value).map(([name, one]) => `${name}=${formatValue(name, one)}`)
    return pairs.length === 0 ? "-" : printable(pairs.join(", "))
  }
  return printable(toJson(value))
}

/** The unformatted value, for programs that read a table. */
export const plain = (value: Json | undefined): string => {
  if (value === null || value === undefined || value === "") return "-"
  return printable(typeof value === "string" ? value : toJson(value))
}
