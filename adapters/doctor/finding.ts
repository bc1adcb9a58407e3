/** Findings of a check: one line for people, or an object for programs. */

export interface Finding {
  readonly status: "ok" | "warn" | "fail"
  /** The subject in a word or two. */
  readonly what: string
  /** The state, and a remedy if there is a problem. */
  readonly why: string
}

const finding =
  (status: Finding["status"]) =>
  (what: string, why: string): Finding => ({ status, what, why })

export const ok = finding("ok")
export const warn = finding("warn")
export const fail = finding("fail")

/** Maximum number of names in a list. */
const named_max = 5

/** A list of names, shortened if there are many. */
export const listNames = (names: ReadonlyArray<string>) =>
  names.length <= named_max
    ? names.join(", ")
    : `${names.slice(0, named_max).join(", ")} and ${names.length - named_max} more`

const day_ms = 86_400_000
const hour_ms = 3_600_000
const minute_ms = 60_000

/** Formats a duration, for example `3 days`. */
export const formatDuration = (ms: number) => {
  const [unit, name] =
    ms >= 2 * day_ms
      ? ([day_ms, "days"] as const)
      : ms >= 2 * hour_ms
        ? ([hour_ms, "hours"] as const)
        : ms >= 2 * minute_ms
          ? ([minute_ms, "minutes"] as const)
          : ([1000, "seconds"] as const)
  return `${Math.round(ms / unit)} ${name}`
}
