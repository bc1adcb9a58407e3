/** How many facts one commit holds. */
import { commit_bytes_max } from "#events/log.ts"

/** Of a commit's bytes what is not its events: snapshot, command ids and origin, at their most. */
const overhead_bytes_max = 32 * 1024

/** What an event has beyond its fact: its type, its epoch, and the cursor before it. */
const event_bytes_over_fact = 160

const utf8 = new TextEncoder()

const bytesOf = (value: unknown) => utf8.encode(JSON.stringify(value)).length

/** As many of the facts, from the first on, as one commit holds: at least one, at most `max`. */
export const fitting = <Fact>(facts: ReadonlyArray<Fact>, max: number): ReadonlyArray<Fact> => {
  // Nearly always all of them do: asked of all at once it takes half as long.
  const all_bytes = overhead_bytes_max + event_bytes_over_fact * facts.length
  if (facts.length <= max && all_bytes + bytesOf(facts) <= commit_bytes_max) return facts
  let bytes = overhead_bytes_max
  const end = facts.findIndex((fact, i) => {
    bytes += bytesOf(fact) + event_bytes_over_fact
    return i > 0 && (i === max || bytes > commit_bytes_max)
  })
  return end === -1 ? facts : facts.slice(0, end)
}
