/** Splits facts into commits. */
import { commit_bytes_max } from "#events/log.ts"

/** Maximum bytes of a commit without its events: snapshot, command ids and origin. */
const overhead_bytes_max = 32 * 1024

/** Bytes of an event in addition to its fact: type, epoch and previous cursor. */
const event_bytes_over_fact = 160

const utf8 = new TextEncoder()

const bytesOf = (value: unknown) => utf8.encode(JSON.stringify(value)).length

/** The first facts that fit into one commit: at least one, at most `max`. */
export const firstBatch = <Fact>(facts: ReadonlyArray<Fact>, max: number): ReadonlyArray<Fact> => {
  // Usually all of them fit. A single check of all takes half as long.
  const all_bytes = overhead_bytes_max + event_bytes_over_fact * facts.length
  if (facts.length <= max && all_bytes + bytesOf(facts) <= commit_bytes_max) return facts
  let bytes = overhead_bytes_max
  const end = facts.findIndex((fact, i) => {
    bytes += bytesOf(fact) + event_bytes_over_fact
    return i > 0 && (i === max || bytes > commit_bytes_max)
  })
  return end === -1 ? facts : facts.slice(0, end)
}
