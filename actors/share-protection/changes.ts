/** Changes: the fields of an update that differ from the current ones. */
import { Equal } from "effect"

/** The fields of `requested` that differ in `present`. All of them are optional. */
export const changesOf = <Changes extends object>(
  present: Changes,
  requested: Changes,
): Changes => {
  const before = new Map<string, unknown>(Object.entries(present))
  const differing = Object.entries(requested).filter(
    ([field, value]) => !Equal.equals(before.get(field), value),
  )
  // Omitting optional fields does not change the type.
  return Object.fromEntries(differing) as Changes
}
