/**
 * The publisher: writes the published events of the log into their stream, in the log's order.
 *
 * Source: DESIGN of the running system, 6; decisions 0010 and 0172.
 */
import { Clock, Effect, Metric, Schedule, Stream } from "effect"
import { Log, type LogUnavailable, type Recorded } from "#events/log.ts"
import { LogGuard } from "#events/log-guard.ts"
import { type Restored, restoration_stream } from "#events/system/restoration.ts"
import { PublisherStanding } from "#projections/health/publisher-standing.ts"
import { slices } from "#projections/projection.ts"
import {
  type Anchor,
  isAfter,
  type Publishing,
  placeOf,
  type Reached,
  readAnchors,
  readRestores,
  restoresAt,
} from "#projections/published/numbering.ts"
import {
  type Delivered,
  type Published,
  PublishedEvents,
  PublishFailed,
  publishedOf,
} from "#projections/published-events.ts"
import { counter, gauge } from "#schemas/metric.ts"

/** Pause before the publisher starts again after a failure, in milliseconds. */
const retry_ms = 500

/** How often the publisher looks whether the bus still has all that it took, in milliseconds. */
const check_ms = 5_000

/** Events told at one go: some milliseconds, between which others have the thread. */
const slice_events_max = 500

/** Events from one anchor to the next: counting from one reads about as many commits. */
const anchor_events = 10_000

/**
 * Longest time that published events wait for an anchor, in milliseconds: events are kept for a day
 * at least, so the last one has an anchor before it is discarded for its age.
 */
const anchor_ms = 12 * 3_600_000

/** The place of an anchor in its commit: behind all of its events. */
const commit_end = Number.MAX_SAFE_INTEGER

/** Events that a stream begins with when it is made again; older ones are served from the log. */
const rebuild_events = 50_000

/** Records an anchor in the log. */
export type RecordAnchor<R = never> = (
  anchor: Omit<Anchor, "at_ms">,
) => Effect.Effect<unknown, { readonly detail: string }, R>

const position_gauge = gauge(
  "almanac_publisher_position",
  "Position in the log that the publisher has come to, where this process was it.",
)
const published_counter = counter(
  "almanac_published_events_total",
  "Events that this process published.",
  {},
)
const remade_counter = counter(
  "almanac_published_streams_remade_total",
  "How often this process made the stream of published events again: it was lost or restored.",
  {},
)

/** What is published, and the restores of the log. */
interface Known extends Publishing {
  readonly restores: ReadonlyArray<Restored>
}

const wait = (detail: string) => new PublishFailed({ detail })

/** Where publishing goes on. */
interface Standing extends Reached {
  /** Up to this position only these types are published: as by the release that numbered them. */
  readonly former?: { readonly position: number; readonly types: ReadonlyArray<string> }
}

/** Where a stream begins that is made again, so that its numbers are those of before. */
const rebuiltFrom = (
  anchors: ReadonlyArray<Anchor>,
  types: ReadonlyArray<string>,
  { reached, head }: { readonly reached: number; readonly head: number },
): Standing => {
  const other = anchors.findLastIndex((anchor) => !isSame(anchor.types, types))
  const own = anchors.slice(other + 1)
  const old = own.findLast(({ sequence }) => sequence <= reached - rebuild_events)
  const begin = old ?? own[0] ?? anchors.at(-1)
  if (begin === undefined) return start
  const former = { position: head, types: begin.types }
  return { ...placeAt(begin), ...(isSame(begin.types, types) ? {} : { former }) }
}
const placeAt = ({ sequence, position, index }: Anchor): Reached => ({ sequence, position, index })
const isSame = (one: ReadonlyArray<string>, other: ReadonlyArray<string>) =>
  one.join() === other.join()
const start: Reached = { sequence: 0, position: 0, index: 0 }

/** Makes the stream again, from the log. */
const remade = Effect.fnUntraced(function* (from: Standing, why: string) {
  yield* Effect.logWarning(
    `The stream of published events is made again, from event ${from.sequence + 1} on: ${why}`,
  )
  yield* (yield* PublishedEvents).remake(from.sequence)
  yield* Metric.update(remade_counter, 1)
  return from
})

/** Whether a restore took back the commit of an event that was published before it. */
const isTakenBack = (restores: ReadonlyArray<Restored>, { event }: Delivered) => {
  const after = restores.findLast(({ position }) => position < event.position)
  return after !== undefined && !event.id.endsWith(`.${after.restore_id}`)
}

/** The place of the last event, proven to be one of this log; undefined: of another history. */
const provenLast = Effect.fnUntraced(function* (
  { publications, restores }: Known,
  last: Delivered,
) {
  const log = yield* Log
  const { sequence, event } = last
  const place = placeOf(event)
  if (isTakenBack(restores, last)) return undefined
  const head = yield* log.head("")
  if (head < place.position) {
    return yield* wait(
      `The log ends at position ${head}, but event ${sequence} was published from position ` +
        `${place.position}, and no restore is recorded. Nothing is published until the log is ` +
        "whole again: run `almanac doctor`.",
    )
  }
  const found = yield* Stream.runHead(log.read("", place.position - 1))
  const told = found._tag === "Some" ? publishedOf(publications, found.value, restores) : []
  const same = told.find((one) => placeOf(one.event).index === place.index)
  if (same !== undefined && same.event.time !== event.time) {
    return yield* wait(
      `Event ${sequence} was published from another log than this one: at position ` +
        `${place.position} this one has something else, and no restore is recorded. Run ` +
        "`almanac doctor`.",
    )
  }
  return { sequence, ...place } satisfies Reached
})

/** Where publishing goes on. What the stream holds of another history is replaced. */
const standing = Effect.fnUntraced(function* (
  known: Known,
): Effect.fn.Return<Standing, PublishFailed | LogUnavailable, Log | PublishedEvents> {
  const published = yield* PublishedEvents
  const anchors = yield* readAnchors(known)
  const head = yield* (yield* Log).head("")
  const anchored = anchors.at(-1)?.sequence ?? 0
  const bounds = yield* published.bounds
  const rebuild = (why: string, reached: number) =>
    remade(rebuiltFrom(anchors, known.types, { reached, head }), why)

  if (bounds === undefined) return yield* rebuild("it is gone.", anchored)
  if (bounds.last === 0 && anchored === 0) return start
  if (bounds.last === 0) return yield* rebuild(`it is empty, after ${anchored} events.`, anchored)
  const last = yield* published.last
  // All of them are older than what is kept: nothing in the stream says whose number this is.
  if (last === undefined) return yield* rebuild("it keeps no event.", anchored)
  const reached = yield* provenLast(known, last)
  if (reached === undefined) return yield* rebuild("its end is not of this log.", anchored)
  const anchor = anchors.findLast(({ sequence }) => sequence === reached.sequence)
  const begin = anchor !== undefined && isAfter(anchor, reached) ? placeAt(anchor) : reached
  // What was written before this release came is published as the one before would have.
  const former = anchors.at(-1)?.types ?? known.types
  return isSame(former, known.types)
    ? begin
    : { ...begin, former: { position: head, types: former } }
})

/** Records an anchor where one is due; what cannot be recorded now is recorded later. */
const anchoring = Effect.fnUntraced(function* <R>(record: RecordAnchor<R>, known: Publishing) {
  const { types } = known
  let last = (yield* readAnchors(known)).at(-1)
  return Effect.fnUntraced(function* ({ sequence, position, index }: Reached) {
    if (last === undefined) return
    const now_ms = yield* Clock.currentTimeMillis
    const is_new = !isSame(last.types, types)
    const since = sequence - last.sequence
    const is_old = since > 0 && last.sequence > 0 && now_ms - last.at_ms > anchor_ms
    if (!is_new && !is_old && since < anchor_events) return
    const anchor = { sequence, position, index, types }
    const recorded = Effect.matchEffect(record(anchor), {
      onFailure: ({ detail }) => Effect.as(Effect.logDebug(`No anchor: ${detail}`), false),
      onSuccess: () => Effect.succeed(true),
    })
    if (yield* recorded) last = { ...anchor, at_ms: now_ms }
  })
})

const isTold = (former: Standing["former"], { service, event }: Published) =>
  former === undefined ||
  event.position > former.position ||
  former.types.includes(`${service}.${event.type}`)

/** Publishes from where the published events end, until it fails. */
const publishFrom = Effect.fnUntraced(function* <R>(
  publishing: Publishing,
  record: RecordAnchor<R>,
) {
  const detail = (yield* LogGuard).trouble()
  if (detail !== undefined) return yield* wait(detail)
  const { publications } = publishing
  const log = yield* Log
  const published = yield* PublishedEvents
  let restores = yield* readRestores
  const begin = yield* standing({ ...publishing, restores })
  const former = "former" in begin ? begin.former : undefined
  let reached: Reached = begin
  // Its last commit may be told in part.
  let read = Math.max(0, begin.position - 1)
  const anchor = yield* anchoring(record, publishing)

  // The last commit is read again: it may have been told in part.
  const position = Math.max(0, begin.position - 1)
  const place = yield* PublisherStanding
  const reach = (at: number) => {
    place.position = at
    place.why = undefined
    return Metric.update(position_gauge, at)
  }
  yield* reach(begin.position)
  const tell = (slice: ReadonlyArray<Recorded>) =>
    slice.flatMap((recorded) => {
      if (recorded.stream === restoration_stream) restores = restoresAt(recorded)
      return publishedOf(publications, recorded, restores).filter(
        (one) => isAfter(placeOf(one.event), begin) && isTold(former, one),
      )
    })
  const whole = Math.max(begin.position, former?.position ?? 0)
  const anchored = Effect.suspend(() =>
    read < whole
      ? Effect.void
      : anchor({ sequence: reached.sequence, position: read, index: commit_end }),
  )
  const publish = (stretch: ReadonlyArray<Recorded>) =>
    Effect.gen(function* () {
      if (stretch.length === 0) return
      const news: Array<Published> = []
      for (const slice of slices(stretch, slice_events_max)) {
        if (slice[0] !== stretch[0]) yield* Effect.yieldNow
        news.push(...tell(slice))
      }
      const last = news.at(-1)
      if (last !== undefined) {
        // What is published of more types than before comes after an anchor.
        yield* anchored
        const sequence = yield* published.append(news, reached.sequence)
        reached = { sequence, ...placeOf(last.event) }
      }
      read = stretch.at(-1)?.position ?? read
      yield* reach(read)
      if (last !== undefined) yield* Metric.update(published_counter, news.length)
      if (reached.sequence > 0) yield* anchored
    })
  const telling = Stream.runForEachArray(log.follow("", position), (stretch) => {
    if (former === undefined) return publish(stretch)
    const isEarlier = ({ position }: Recorded) => position <= former.position
    const later = stretch.filter((one) => !isEarlier(one))
    return Effect.andThen(publish(stretch.filter(isEarlier)), publish(later))
  })

  const checking = Effect.andThen(
    keptAfterAWhile(published, () => reached.sequence),
    anchored,
  )
  return yield* Effect.raceFirst(telling, Effect.forever(checking))
})

/**
 * Fails where the bus no longer has all that it took: one that was killed may have lost the last
 * events, as it does not sync. Without this they would be missing until there is another event.
 */
const keptAfterAWhile = Effect.fnUntraced(function* (
  { bounds }: Pick<PublishedEvents["Service"], "bounds">,
  reached: () => number,
) {
  yield* Effect.sleep(check_ms)
  const taken = reached()
  const kept = (yield* bounds)?.last ?? -1
  if (kept >= taken) return
  return yield* wait(kept < 0 ? "The stream is gone." : `It has ${kept} of ${taken} events.`)
})

/**
 * Publishes for as long as it runs; only one publisher may (a lease elects it).
 *
 * Its place is the last published event itself, and each append names the one before: neither a
 * crash nor an outage, nor a second publisher, doubles or drops an event. What it cannot read it
 * does not skip: it waits for a release that can, and says so.
 */
export const publisher = <R = never>(
  publishing: Publishing,
  record: RecordAnchor<R> = () => Effect.void,
) =>
  Effect.suspend(() => {
    let told = ""
    const tell = Effect.fnUntraced(function* ({ detail }: PublishFailed | LogUnavailable) {
      const standing = yield* PublisherStanding
      standing.why = detail
      // Where it has published nothing it stands before the first commit.
      standing.position ??= 0
      if (detail === told) return
      told = detail
      yield* Effect.logWarning(`The publisher waits: ${detail}`)
    })
    return publishFrom(publishing, record).pipe(
      Effect.catchDefect((defect) => Effect.fail(wait(String(defect)))),
      Effect.tapError(tell),
      Effect.retry(Schedule.spaced(retry_ms)),
      Effect.andThen(Effect.never),
      // From here on another process may publish.
      Effect.ensuring(
        Effect.map(PublisherStanding, (standing) => {
          standing.position = undefined
        }),
      ),
    )
  })
