import { Effect } from "effect"

/** Warnings of what has this name: each is told once, until they are forgotten. */
export const onceTold = (name: string) => {
  const told = new Set<string>()
  const tell = (why: string) => {
    if (told.has(why)) return Effect.void
    told.add(why)
    return Effect.logWarning(`${name} ${why}`)
  }
  return { tell, forget: () => told.clear() }
}
