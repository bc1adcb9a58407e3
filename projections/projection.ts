import { Schema } from "effect"
import type { Compilable, Kysely } from "kysely"
import {
  type Commit,
  type Entry,
  isPartOf,
  isReadable,
  type Log,
  type Part,
  parseStream,
  type Unreadable,
} from "#events/log.ts"
import type { Write } from "#projections/statement.ts"
import { type Message, typesOf } from "#schemas/message.ts"

/** Position of an event in the log. */
export interface Place {
  readonly position: number
  /** The event's index in its commit, from 0. */
  readonly index: number
  readonly stream: string
  /** The aggregate's id. */
  readonly id: string
  readonly commit: Commit
}

/** A set of tables, and the writes that each event makes to them. */
export interface Projection<Tables> {
  /** The part of the log it reads. */
  readonly part: Part
  readonly create: (db: Kysely<Tables>) => ReadonlyArray<Compilable>
  readonly project: (event: Message, place: Place) => ReadonlyArray<Write>
  /** Like `project`, for a whole commit whose events combine into fewer writes. */
  readonly projectAll?: (events: ReadonlyArray<Message>, place: CommitPlace) => ReadonlyArray<Write>
  /** Like `project`, for a slice of a commit's events; the place is that of the first one. */
  readonly projectSome?: (events: ReadonlyArray<Message>, place: Place) => ReadonlyArray<Write>
  /** A few writes for an unreadable entry, if the tables count it. */
  readonly skip?: (entry: Unreadable) => ReadonlyArray<Write>
}

/** Position of a commit in the log. */
export type CommitPlace = Omit<Place, "index">

/**
 * Declares the projection of one kind of aggregate: a plain function from event to writes.
 *
 * Events are decoded by their schema, which upcasts older versions. Unknown types come from a newer
 * release that runs at the same time: they appear in the read model of that release, which is a
 * separate one because its version increases with the types (decision 0148).
 */
export const projection = <Tables, Event>({
  part,
  event,
  create,
  project,
}: {
  readonly part: Part
  readonly event: Schema.ConstraintCodec<Event, unknown>
  readonly create: (db: Kysely<Tables>) => ReadonlyArray<Compilable>
  readonly project: (event: Event, place: Place) => ReadonlyArray<Write>
}): Projection<Tables> => {
  const decode = Schema.decodeUnknownSync(event)
  const types = typesOf(event)
  return {
    part,
    create,
    project: (message, place) => (types.has(message.type) ? project(decode(message), place) : []),
  }
}

/** Like `projection`, for a plain function from all events of a commit to writes. */
export const commitProjection = <Tables, Event>({
  part,
  event,
  create,
  project,
}: {
  readonly part: Part
  readonly event: Schema.ConstraintCodec<Event, unknown>
  readonly create: (db: Kysely<Tables>) => ReadonlyArray<Compilable>
  readonly project: (events: ReadonlyArray<Event>, place: CommitPlace) => ReadonlyArray<Write>
}): Projection<Tables> => {
  const decode = Schema.decodeUnknownSync(event)
  const types = typesOf(event)
  const projectAll = (messages: ReadonlyArray<Message>, place: CommitPlace) =>
    project(
      messages.filter(({ type }) => types.has(type)).map((message) => decode(message)),
      place,
    )
  return {
    part,
    create,
    projectAll,
    project: (message, place) => projectAll([message], place),
  }
}

/** The entries that these projections read: all if one of them shows unreadable entries. */
export const sourceOf = <Tables>(
  log: Log["Service"],
  projections: ReadonlyArray<Projection<Tables>>,
) =>
  projections.some(({ skip }) => skip !== undefined)
    ? { read: log.entries, follow: log.followEntries }
    : log

/** Number of events in an entry; an unreadable entry counts as one. */
export const eventsIn = (entry: Entry) => (isReadable(entry) ? entry.commit.events.length : 1)

/** Splits a stretch of the log into slices of about that many events, never within a commit. */
export function* slices<One extends Entry>(stretch: ReadonlyArray<One>, events_max: number) {
  let from = 0
  let events = 0
  for (const [i, entry] of stretch.entries()) {
    if (events > 0 && events + eventsIn(entry) > events_max) {
      yield stretch.slice(from, i)
      from = i
      events = 0
    }
    events += eventsIn(entry)
  }
  if (from < stretch.length) yield stretch.slice(from)
}

/**
 * All writes of a commit, in the order of its events, followed by the writes of projections that
 * take several events at once and have tables of their own. `slice_events` splits the result into
 * slices of that many events, each created on demand.
 */
export function* writesOf<Tables>(
  projections: ReadonlyArray<Projection<Tables>>,
  entry: Entry,
  slice_events = Number.POSITIVE_INFINITY,
): Generator<ReadonlyArray<Write>, void> {
  if (!isReadable(entry)) {
    yield projections.flatMap(({ skip }) => skip?.(entry) ?? [])
    return
  }
  const { position, stream, commit } = entry
  const { id } = parseStream(stream)
  const readers = projections.filter(({ part }) => isPartOf(part, stream))
  if (readers.length === 0) return
  const { events } = commit
  const alls = readers.filter(({ projectAll }) => projectAll !== undefined)
  const others = readers.filter(({ projectAll }) => projectAll === undefined)
  const step = others.length === 0 ? events.length : Math.min(slice_events, events.length)
  let from = 0
  do {
    const stretch = events.slice(from, from + step)
    const writes = writesOfStretch(others, stretch, { position, index: from, stream, id, commit })
    from += step
    if (from >= events.length) {
      for (const { projectAll } of alls) {
        if (projectAll) writes.push(...projectAll(events, { position, stream, id, commit }))
      }
    }
    yield writes
  } while (from < events.length)
}

const writesOfStretch = <Tables>(
  readers: ReadonlyArray<Projection<Tables>>,
  stretch: ReadonlyArray<Message>,
  place: Place,
) => {
  const writes: Array<Write> = []
  const single = readers.filter(({ projectSome }) => projectSome === undefined)
  for (const [i, event] of single.length === 0 ? [] : stretch.entries()) {
    const own = { ...place, index: place.index + i }
    for (const { project } of single) writes.push(...project(event, own))
  }
  for (const { projectSome } of readers) {
    if (projectSome) writes.push(...projectSome(stretch, place))
  }
  return writes
}
