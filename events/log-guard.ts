/**
 * The guard of the log: compares it with what others know of it, and makes a log that has lost
 * commits read-only.
 *
 * After some kinds of damage JetStream silently serves a shorter log. Everything that stores a
 * position and the hash of the commit there is a witness: the high-water mark, each read model, the
 * published events, the volumes.
 */
import { Context, Effect } from "effect"

/** Positions (inclusive) of acknowledged commits that are missing from the log. */
export interface Missing {
  readonly from: number
  readonly to: number
}

/** A difference between the log and what a witness knows of it. */
export interface Finding {
  /**
   * `shorter`: it ends before a position that the witness knows. `other`: it holds another commit
   * there. `gap`: commits between its first and its last are missing. `absent`: its stream does not
   * exist.
   */
  readonly kind: "shorter" | "other" | "gap" | "absent"
  /** Its name for operators: "the high-water mark". */
  readonly witness: string
  /** The position that the witness knows. */
  readonly position: number
  /** The last position of the log at the comparison. */
  readonly head: number
  /** Empty if only the content differs. */
  readonly missing: ReadonlyArray<Missing>
}

/** A witness's knowledge: this commit was at this position. */
export interface Witness {
  readonly name: string
  readonly position: number
}

export interface Guard {
  /** Why the log is read-only; undefined while it accepts commits. */
  readonly problem: () => string | undefined
  readonly findings: () => ReadonlyArray<Finding>
  /** Makes the log read-only until the process ends. Each finding is logged once. */
  readonly close: (finding: Finding) => Effect.Effect<void>
  /**
   * Reports that the log does not hold what the witness knows. True if a restore or an accepted
   * loss explains the difference; otherwise the log becomes read-only.
   */
  readonly isExplained: (witness: Witness, head: number) => Effect.Effect<boolean>
}

/** Without a guard, as in a unit test, every difference is explained. */
export const LogGuard = Context.Reference<Guard>("events/LogGuard", {
  defaultValue: () => ({
    problem: () => undefined,
    findings: () => [],
    close: () => Effect.void,
    isExplained: () => Effect.succeed(true),
  }),
})

/** Number of commits in a list of ranges. */
export const countMissing = (missing: ReadonlyArray<Missing>) =>
  missing.reduce((sum, { from, to }) => sum + to - from + 1, 0)

/** Ranges listed in a sentence; further ones are counted. */
const ranges_listed_max = 3

const rangeText = ({ from, to }: Missing) => (from === to ? `${from}` : `${from} to ${to}`)

/** "3 commits are missing: 4, 7 to 8". */
export const missingText = (missing: ReadonlyArray<Missing>) => {
  const count = countMissing(missing)
  const listed = missing.slice(0, ranges_listed_max).map(rangeText).join(", ")
  const more = missing.length - ranges_listed_max
  const rest = more > 0 ? ` and ${more} more ranges` : ""
  const what = count === 1 ? "1 commit is missing" : `${count} commits are missing`
  const [only] = missing
  if (missing.length === 1 && only !== undefined) {
    return only.from === only.to ? `${what}, at ${listed}` : `${what}, from ${listed}`
  }
  return `${what}: ${listed}${rest}`
}

/** A finding as a sentence without its full stop. */
export const findingText = ({ kind, witness, position, head, missing }: Finding) => {
  switch (kind) {
    case "absent":
      return `${missingText(missing)}: its stream is gone, but ${witness} has position ${position}`
    case "shorter":
      return `${missingText(missing)}: it ends at ${head}, but ${witness} has position ${position}`
    case "gap":
      return `${missingText(missing)}, before its end at ${head}`
    case "other":
      return `its commit at ${position} differs from that of ${witness}`
  }
}

/** Options for an operator whose log has lost commits. */
export const remedy =
  "Run `almanac doctor`. Restore a backup with `almanac restore-state`, or accept the loss of " +
  "the missing commits with `almanac log accept-loss`."

/** All ranges of several findings, merged and in order. */
export const mergeMissing = (all: ReadonlyArray<Missing>): ReadonlyArray<Missing> => {
  const merged: Array<Missing> = []
  for (const { from, to } of all.toSorted((one, other) => one.from - other.from)) {
    const last = merged.at(-1)
    if (last === undefined || from > last.to + 1) merged.push({ from, to })
    else merged[merged.length - 1] = { from: last.from, to: Math.max(last.to, to) }
  }
  return merged
}

/** Ranges minus other ranges. */
export const withoutRanges = (
  missing: ReadonlyArray<Missing>,
  accepted: ReadonlyArray<Missing>,
): ReadonlyArray<Missing> => {
  let left = [...missing]
  for (const { from, to } of accepted) {
    left = left.flatMap((range) => {
      if (to < range.from || from > range.to) return [range]
      const before = { from: range.from, to: from - 1 }
      const after = { from: to + 1, to: range.to }
      return [before, after].filter((part) => part.from <= part.to)
    })
  }
  return left
}
