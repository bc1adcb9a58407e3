/**
 * The guard of the log: compares it with what was known of it elsewhere, and keeps everybody from
 * writing to a log that has lost commits.
 *
 * JetStream answers with a shorter log after some kinds of damage, and says nothing. Whoever knows
 * a position and the hash of the commit there is a witness: the high-water mark, each read model,
 * the published events, the volumes.
 */
import { Context, Effect } from "effect"

/** Positions, both ends included, whose commits were acknowledged and are not in the log. */
export interface Missing {
  readonly from: number
  readonly to: number
}

/** One way in which the log is not the log that a witness knows. */
export interface Finding {
  /**
   * `shorter`: it ends before a position that the witness knows. `other`: it holds another commit
   * there. `gap`: commits between its first and its last are missing. `absent`: its stream is gone.
   */
  readonly kind: "shorter" | "other" | "gap" | "absent"
  /** Its name for operators: "the high-water mark". */
  readonly witness: string
  /** The position that the witness knows. */
  readonly position: number
  /** The last position of the log when it was compared. */
  readonly head: number
  /** Empty where only the content is another. */
  readonly missing: ReadonlyArray<Missing>
}

/** What a witness knows: this commit was at this position. */
export interface Witness {
  readonly name: string
  readonly position: number
}

export interface Guard {
  /** Why the log is read-only; undefined while it takes commits. */
  readonly trouble: () => string | undefined
  readonly findings: () => ReadonlyArray<Finding>
  /** Makes the log read-only until the process ends. Each finding is logged once. */
  readonly close: (finding: Finding) => Effect.Effect<void>
  /**
   * Tells that the log does not hold what the witness knows. True when a restore or an accepted
   * loss explains that; otherwise the log is read-only from then on.
   */
  readonly explains: (witness: Witness, head: number) => Effect.Effect<boolean>
}

/** Without a guard, as in a test of one part, every difference is explained. */
export const LogGuard = Context.Reference<Guard>("events/LogGuard", {
  defaultValue: () => ({
    trouble: () => undefined,
    findings: () => [],
    close: () => Effect.void,
    explains: () => Effect.succeed(true),
  }),
})

/** How many commits a list of ranges has. */
export const countMissing = (missing: ReadonlyArray<Missing>) =>
  missing.reduce((sum, { from, to }) => sum + to - from + 1, 0)

/** Ranges shown in a sentence; the rest is counted. */
const ranges_shown = 3

const rangeText = ({ from, to }: Missing) => (from === to ? `${from}` : `${from} to ${to}`)

/** "3 commits are missing: 4, 7 to 8". */
export const missingText = (missing: ReadonlyArray<Missing>) => {
  const count = countMissing(missing)
  const shown = missing.slice(0, ranges_shown).map(rangeText).join(", ")
  const more = missing.length - ranges_shown
  const rest = more > 0 ? ` and ${more} more ranges` : ""
  const what = count === 1 ? "1 commit is missing" : `${count} commits are missing`
  const [only] = missing
  if (missing.length === 1 && only !== undefined) {
    return only.from === only.to ? `${what}, at ${shown}` : `${what}, from ${shown}`
  }
  return `${what}: ${shown}${rest}`
}

/** What a finding says, in one sentence without its end. */
export const findingText = ({ kind, witness, position, head, missing }: Finding) => {
  switch (kind) {
    case "absent":
      return `${missingText(missing)}: its stream is gone, and ${witness} shows ${position}`
    case "shorter":
      return `${missingText(missing)}: it ends at ${head}, and ${witness} shows ${position}`
    case "gap":
      return `${missingText(missing)}, before its end at ${head}`
    case "other":
      return `it holds another commit at ${position} than ${witness} shows`
  }
}

/** What an operator can do about a log that is not whole. */
export const way_out =
  "See `almanac doctor`. Put a backup back with `almanac restore-state`, or give the missing " +
  "commits up with `almanac log accept-loss`."

/** All ranges of some findings, merged and in order. */
export const mergeMissing = (all: ReadonlyArray<Missing>): ReadonlyArray<Missing> => {
  const merged: Array<Missing> = []
  for (const { from, to } of all.toSorted((one, other) => one.from - other.from)) {
    const last = merged.at(-1)
    if (last === undefined || from > last.to + 1) merged.push({ from, to })
    else merged[merged.length - 1] = { from: last.from, to: Math.max(last.to, to) }
  }
  return merged
}

/** What is left of some ranges without others. */
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
