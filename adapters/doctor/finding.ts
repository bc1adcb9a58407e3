/** What a look at a deployment finds: a line for a person, an object for a program. */

export interface Finding {
  readonly status: "ok" | "warn" | "fail"
  /** What was looked at, in a word or two. */
  readonly what: string
  /** What is so, and what to do where it is not as it should be. */
  readonly why: string
}

const finding =
  (status: Finding["status"]) =>
  (what: string, why: string): Finding => ({ status, what, why })

export const ok = finding("ok")
export const warn = finding("warn")
export const fail = finding("fail")

/** How many of several are named. */
const named_max = 5

/** Some of many in a few words. */
export const some = (names: ReadonlyArray<string>) =>
  names.length <= named_max
    ? names.join(", ")
    : `${names.slice(0, named_max).join(", ")} and ${names.length - named_max} more`

const day_ms = 86_400_000
const hour_ms = 3_600_000
const minute_ms = 60_000

/** A stretch of time as people say it: `3 days`. */
export const spell = (ms: number) => {
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
