import { Effect } from "effect"

/** Logs each warning about `name` once, until the warnings are forgotten. */
export const warnOnce = (name: string) => {
  const logged = new Set<string>()
  const warn = (warning: string) => {
    if (logged.has(warning)) return Effect.void
    logged.add(warning)
    return Effect.logWarning(`${name} ${warning}`)
  }
  return { warn: warn, forget: () => logged.clear() }
}
