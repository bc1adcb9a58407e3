/**
 * The publisher: writes the published events of the log into their stream, in the log's order.
 *
 * Source: DESIGN of the running system, 6; decisions 0010 and 0172.
 */
import { Clock, Effect, Metric, Schedule, Stream } from "effect"
import { Log, type LogUnavailable, type Recorded } from "#events/log.ts"
import { LogGuard } from "#events/log-guard.ts"
import { type Restored, restoration_stream } from "#events/system/restoration.ts"
import { PublisherStatus } from "#projections/health/publisher-status.ts"
import { slices } from "#projections/projection.ts"
import {
  type Anchor,
  isAfter,
  type NumberedPlace,
  type Publishing,
  placeOf,
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

/** Pause before the publisher restarts after a failure, in milliseconds. */
const retry_ms = 500

/** How often the publisher checks that the bus still has every accepted event, in milliseconds. */
const check_ms = 5_000

/** Events converted per slice: a few milliseconds, after which other fibers get the thread. */
const slice_events_max = 500

/** Events between two anchors: counting from one reads about as many commits. */
const anchor_events = 10_000

/**
 * Longest time that published events wait for an anchor, in milliseconds: events are kept for at
 * least a day, so the last one has an anchor before it expires.
 */
const anchor_ms = 12 * 3_600_000

/** The index of an anchor in its commit: after all its events. */
const commit_end = Number.MAX_SAFE_INTEGER

/** Events that a recreated stream starts with; older ones are served from the log. */
const rebuild_events = 50_000

/** Records an anchor in the log. */
export type RecordAnchor<R = never> = (
  anchor: Omit<Anchor, "at_ms">,
) => Effect.Effect<unknown, { readonly detail: string }, R>

const position_gauge = gauge(
  "almanac_publisher_position",
  "Log position up to which this process has published events.",
)
const published_counter = counter(
  "almanac_published_events_total",
  "Events published by this process.",
  {},
)
const recreated_counter = counter(
  "almanac_published_streams_remade_total",
  "Number of times this process recreated the stream of published events.",
  {},
)

/** The published types, and the log's restores. */
interface Known extends Publishing {
  readonly restores: ReadonlyArray<Restored>
}

const blocked = (detail: string) => new PublishFailed({ detail })

/** Where publishing resumes. */
interface ResumePoint extends NumberedPlace {
  /** Up to this position only these types are published, as by the release that numbered them. */
  readonly former?: { readonly position: number; readonly types: ReadonlyArray<string> }
}

/** Where a recreated stream begins, so that its events keep their numbers. */
const rebuildStart = (
  anchors: ReadonlyArray<Anchor>,
  types: ReadonlyArray<string>,
  { reached, head }: { readonly reached: number; readonly head: number },
): ResumePoint => {
  const other = anchors.findLastIndex((anchor) => !isSame(anchor.types, types))
  const own = anchors.slice(other + 1)
  const old = own.findLast(({ sequence }) => sequence <= reached - rebuild_events)
  const begin = old ?? own[0] ?? anchors.at(-1)
  if (begin === undefined) return start
  const former = { position: head, types: begin.types }
  return { ...placeAt(begin), ...(isSame(begin.types, types) ? {} : { former }) }
}
const placeAt = ({ sequence, position, index }: Anchor): NumberedPlace => ({
  sequence,
  position,
  index,
})
const isSame = (one: ReadonlyArray<string>, other: ReadonlyArray<string>) =>
  one.join() === other.join()
const start: NumberedPlace = { sequence: 0, position: 0, index: 0 }

/** Recreates the stream from the log. */
const recreateStream = Effect.fnUntraced(function* (from: ResumePoint, why: string) {
  yield* Effect.logWarning(
    `Recreating the stream of published events from event ${from.sequence + 1}: ${why}`,
  )
  yield* (yield* PublishedEvents).recreate(from.sequence)
  yield* Metric.update(recreated_counter, 1)
  return from
})

/** Whether a restore removed the commit of an event that was published before it. */
const isRolledBack = (restores: ReadonlyArray<Restored>, { event }: Delivered) => {
  const after = restores.findLast(({ position }) => position < event.position)
  return after !== undefined && !event.id.endsWith(`.${after.restore_id}`)
}

/** The place of the last event, verified to be in this log; undefined if from another history. */
const verifiedLast = Effect.fnUntraced(function* (
  { publications, restores }: Known,
  last: Delivered,
) {
  const log = yield* Log
  const { sequence, event } = last
  const place = placeOf(event)
  if (isRolledBack(restores, last)) return undefined
  const head = yield* log.head("")
  if (head < place.position) {
    return yield* blocked(
      `The log ends at position ${head}, but event ${sequence} was published from position ` +
        `${place.position}, and no restore is recorded. Nothing is published until the log is ` +
        "repaired: run `almanac doctor`.",
    )
  }
  const found = yield* Stream.runHead(log.read("", place.position - 1))
  const candidates = found._tag === "Some" ? publishedOf(publications, found.value, restores) : []
  const same = candidates.find((one) => placeOf(one.event).index === place.index)
  if (same !== undefined && same.event.time !== event.time) {
    return yield* blocked(
      `Event ${sequence} was published from a different log: at position ${place.position} this ` +
        "log has another commit, and no restore is recorded. Run `almanac doctor`.",
    )
  }
  return { sequence, ...place } satisfies NumberedPlace
})

/** Where publishing resumes. A stream of another history is replaced. */
const findResumePoint = Effect.fnUntraced(function* (
  known: Known,
): Effect.fn.Return<ResumePoint, PublishFailed | LogUnavailable, Log | PublishedEvents> {
  const published = yield* PublishedEvents
  const anchors = yield* readAnchors(known)
  const head = yield* (yield* Log).head("")
  const anchored = anchors.at(-1)?.sequence ?? 0
  const bounds = yield* published.bounds
  const rebuild = (why: string, reached: number) =>
    recreateStream(rebuildStart(anchors, known.types, { reached, head }), why)

  if (bounds === undefined) return yield* rebuild("it no longer exists.", anchored)
  if (bounds.last === 0 && anchored === 0) return start
  if (bounds.last === 0) return yield* rebuild(`it is empty, after ${anchored} events.`, anchored)
  const last = yield* published.last
  // All events were older than the retention: nothing in the stream identifies this number.
  if (last === undefined) return yield* rebuild("it contains no events.", anchored)
  const reached = yield* verifiedLast(known, last)
  if (reached === undefined) return yield* rebuild("its last event is not from this log.", anchored)
  const anchor = anchors.findLast(({ sequence }) => sequence === reached.sequence)
  const begin = anchor !== undefined && isAfter(anchor, reached) ? placeAt(anchor) : reached
  // Commits written before this release are published as the previous release would have.
  const former = anchors.at(-1)?.types ?? known.types
  return isSame(former, known.types)
    ? begin
    : { ...begin, former: { position: head, types: former } }
})

/** Records an anchor when one is due; a failed attempt is retried later. */
const anchoring = Effect.fnUntraced(function* <R>(record: RecordAnchor<R>, known: Publishing) {
  const { types } = known
  let last = (yield* readAnchors(known)).at(-1)
  return Effect.fnUntraced(function* ({ sequence, position, index }: NumberedPlace) {
    if (last === undefined) return
    const now_ms = yield* Clock.currentTimeMillis
    const is_new = !isSame(last.types, types)
    const since = sequence - last.sequence
    const is_old = since > 0 && last.sequence > 0 && now_ms - last.at_ms > anchor_ms
    if (!is_new && !is_old && since < anchor_events) return
    const anchor = { sequence, position, index, types }
    const recorded = Effect.matchEffect(record(anchor), {
      onFailure: ({ detail }) =>
        Effect.as(
          Effect.logDebug(`The anchor of published events could not be written: ${detail}`),
          false,
        ),
      onSuccess: () => Effect.succeed(true),
    })
    if (yield* recorded) last = { ...anchor, at_ms: now_ms }
  })
})

const isIncluded = (former: ResumePoint["former"], { service, event }: Published) =>
  former === undefined ||
  event.position > former.position ||
  former.types.includes(`${service}.${event.type}`)

/** Publishes from the end of the published events until it fails. */
const publishFrom = Effect.fnUntraced(function* <R>(
  publishing: Publishing,
  record: RecordAnchor<R>,
) {
  const detail = (yield* LogGuard).problem()
  if (detail !== undefined) return yield* blocked(detail)
  const { publications } = publishing
  const log = yield* Log
  const published = yield* PublishedEvents
  let restores = yield* readRestores
  const begin = yield* findResumePoint({ ...publishing, restores })
  const former = "former" in begin ? begin.former : undefined
  let reached: NumberedPlace = begin
  // Its last commit may be partly published.
  let read = Math.max(0, begin.position - 1)
  const anchor = yield* anchoring(record, publishing)

  // The last commit is read again: it may be partly published.
  const position = Math.max(0, begin.position - 1)
  const place = yield* PublisherStatus
  const reach = (at: number) => {
    place.position = at
    place.why = undefined
    return Metric.update(position_gauge, at)
  }
  yield* reach(begin.position)
  const convert = (slice: ReadonlyArray<Recorded>) =>
    slice.flatMap((recorded) => {
      if (recorded.stream === restoration_stream) restores = restoresAt(recorded)
      return publishedOf(publications, recorded, restores).filter(
        (one) => isAfter(placeOf(one.event), begin) && isIncluded(former, one),
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
        news.push(...convert(slice))
      }
      const last = news.at(-1)
      if (last !== undefined) {
        // An anchor comes before the first event of an additional type.
        yield* anchored
        const sequence = yield* published.append(news, reached.sequence)
        reached = { sequence, ...placeOf(last.event) }
      }
      read = stretch.at(-1)?.position ?? read
      yield* reach(read)
      if (last !== undefined) yield* Metric.update(published_counter, news.length)
      if (reached.sequence > 0) yield* anchored
    })
  const following = Stream.runForEachArray(log.follow("", position), (stretch) => {
    if (former === undefined) return publish(stretch)
    const isEarlier = ({ position }: Recorded) => position <= former.position
    const later = stretch.filter((one) => !isEarlier(one))
    return Effect.andThen(publish(stretch.filter(isEarlier)), publish(later))
  })

  const checking = Effect.andThen(
    verifyStream(published, () => reached.sequence),
    anchored,
  )
  return yield* Effect.raceFirst(following, Effect.forever(checking))
})

/**
 * Fails if the bus has lost accepted events: it does not sync, so a killed server may lose the last
 * ones. Without this check they would be missing until the next event.
 */
const verifyStream = Effect.fnUntraced(function* (
  { bounds }: Pick<PublishedEvents["Service"], "bounds">,
  reached: () => number,
) {
  yield* Effect.sleep(check_ms)
  const accepted_count = reached()
  const stored_count = (yield* bounds)?.last ?? -1
  if (stored_count >= accepted_count) return
  return yield* blocked(
    stored_count < 0
      ? "The stream of published events no longer exists."
      : `The stream of published events has only ${stored_count} of ${accepted_count} ` +
          "accepted events.",
  )
})

/**
 * Publishes for as long as it runs; a lease elects the only publisher.
 *
 * Its place is the last published event itself, and each append names the previous one: a crash, an
 * outage or a second publisher neither duplicates nor drops an event. It does not skip an
 * unreadable commit, but logs it and waits for a release that can read it.
 */
export const publisher = <R = never>(
  publishing: Publishing,
  record: RecordAnchor<R> = () => Effect.void,
) =>
  Effect.suspend(() => {
    let logged = ""
    const report = Effect.fnUntraced(function* ({ detail }: PublishFailed | LogUnavailable) {
      const status = yield* PublisherStatus
      status.why = detail
      // Before its first event, its position is before the first commit.
      status.position ??= 0
      if (detail === logged) return
      logged = detail
      yield* Effect.logWarning(`The publisher is waiting: ${detail}`)
    })
    return publishFrom(publishing, record).pipe(
      Effect.catchDefect((defect) => Effect.fail(blocked(String(defect)))),
      Effect.tapError(report),
      Effect.retry(Schedule.spaced(retry_ms)),
      Effect.andThen(Effect.never),
      // From here on another process may publish.
      Effect.ensuring(
        Effect.map(PublisherStatus, (status) => {
          status.position = undefined
        }),
      ),
    )
  })
