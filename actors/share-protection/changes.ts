/** Changes: what of an update is one. */
import { Equal } from "effect"

/** The fields of `asked` that `present` has otherwise. All of them are optional. */
export const changesOf = <Changes extends object>(present: Changes, asked: Changes): Changes => {
  const before = new Map<string, unknown>(Object.entries(present))
  const differing = Object.entries(asked).filter(
    ([field, value]) => !Equal.equals(before.get(field), value),
  )
  // Leaving out some of the optional fields makes no other type.
  return Object.fromEntries(differing) as Changes
}
