/**
 * Reads that skip unreadable entries, and the search for the last commit before one. Only a stream
 * that ends with an unreadable entry needs that search.
 *
 * Source: decision 0182.
 */
import { Effect, Stream } from "effect"
import {
  type Entry,
  isReadable,
  type LogUnavailable,
  type Part,
  type Recorded,
} from "#events/log.ts"
import { isStream } from "./codec.ts"

/** Positions that the search reads first, and the growth factor of each further step. */
const span_positions = 1_000
const span_growth = 16

/** Maximum number of cached results (LRU): each usually holds one commit of 1 KB. */
const cached_max = 10_000

/** Maximum number of concurrent searches. */
const searches_max = 16

/** Entries of a part after a position, up to the end of the log. */
type Entries = (part: Part, after: number) => Stream.Stream<Entry, LogUnavailable>

/** Finds the last commit of a part before an unreadable entry. */
export type LastBefore = (
  part: Part,
  position: number,
) => Effect.Effect<Recorded | undefined, LogUnavailable>

/** Filters out unreadable entries. */
export const readable = <E, R>(entries: Stream.Stream<Entry, E, R>) =>
  Stream.filter(entries, isReadable)

/**
 * Searches backwards in growing windows, so that a subject with many large commits is not read from
 * the beginning. The next search for a part stops at the last result.
 */
export const lastReadable = (entries: Entries): LastBefore => {
  const known = new Map<Part, { readonly position: number; readonly last: Recorded | undefined }>()

  const within = (part: Part, after: number, position: number) =>
    entries(part, after).pipe(
      Stream.takeWhile((entry) => entry.position < position),
      Stream.runFold(
        (): Recorded | undefined => undefined,
        (last, entry) => (isReadable(entry) ? entry : last),
      ),
    )

  return Effect.fnUntraced(function* (part, position) {
    const before = known.get(part)
    const is_known = before !== undefined && before.position <= position
    let found = is_known && before.position === position ? before.last : undefined
    let end = position
    const from = is_known ? before.position : 0
    for (let span = span_positions; found === undefined && end > from + 1; span *= span_growth) {
      const after = Math.max(from, position - span - 1)
      found = yield* within(part, after, end)
      end = after + 1
    }
    const last = found ?? (is_known ? before.last : undefined)
    known.delete(part)
    known.set(part, { position, last })
    const [oldest] = known.size > cached_max ? known.keys() : []
    if (oldest !== undefined) known.delete(oldest)
    return last
  })
}

/** Replaces each unreadable last entry with the last commit of its stream. */
export const withReadableLasts = (
  lasts: Stream.Stream<Entry, LogUnavailable>,
  lastBefore: LastBefore,
): Stream.Stream<Recorded, LogUnavailable> => {
  const readableOf = (entry: Entry) =>
    isReadable(entry) || !isStream(entry.stream)
      ? Effect.succeed(entry)
      : Effect.map(lastBefore(entry.stream, entry.position), (last) => last ?? entry)
  return lasts.pipe(
    Stream.mapArrayEffect((some) =>
      some.every(isReadable)
        ? Effect.succeed(some)
        : Effect.forEach(some, readableOf, { concurrency: searches_max }),
    ),
    readable,
  )
}
