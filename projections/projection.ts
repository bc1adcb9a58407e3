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

/** Where an event stands in the log. */
export interface Place {
  readonly position: number
  /** The event's place in its commit, from 0. */
  readonly index: number
  readonly stream: string
  /** The aggregate's id. */
  readonly id: string
  readonly commit: Commit
}

/** A set of tables, and the writes that each event makes to them. */
export interface Projection<Tables> {
  /** The part of the log that it reads. */
  readonly part: Part
  readonly create: (db: Kysely<Tables>) => ReadonlyArray<Compilable>
  readonly project: (event: Message, place: Place) => ReadonlyArray<Write>
  /** The same of a whole commit, where its events together come to fewer writes. */
  readonly projectAll?: (events: ReadonlyArray<Message>, place: CommitPlace) => ReadonlyArray<Write>
  /** The same of a stretch of a commit's events, of which the place is the first one's. */
  readonly projectSome?: (events: ReadonlyArray<Message>, place: Place) => ReadonlyArray<Write>
  /** The writes for what cannot be read, where it has a part in the tables: in few. */
  readonly skip?: (entry: Unreadable) => ReadonlyArray<Write>
}

/** Where a commit stands in the log. */
export type CommitPlace = Omit<Place, "index">

/**
 * Declares the projection of one kind of aggregate: a plain function from event to writes.
 *
 * Events are decoded by their schema, which upcasts what older versions wrote. What it has no type
 * for, a newer release has written while both run: it shows in that one's read model, which is
 * another, since its version rises with the types (decision 0148).
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

/** As `projection`, for a plain function from all events of a commit to writes. */
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

/** What these read of the log: all of it, where one of them shows what cannot be read. */
export const sourceOf = <Tables>(
  log: Log["Service"],
  projections: ReadonlyArray<Projection<Tables>>,
) =>
  projections.some(({ skip }) => skip !== undefined)
    ? { read: log.entries, follow: log.followEntries }
    : log

/** Events of an entry; what cannot be read takes as long as one. */
export const eventsIn = (entry: Entry) => (isReadable(entry) ? entry.commit.events.length : 1)

/** Cuts a stretch of the log where enough events have gathered; a commit is never cut. */
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
 * Every write that a commit makes, in the order of its events; then those of the projections that
 * take several of them at once, which have tables of their own. `slice_events` cuts it into
 * stretches of so many events, each made when it is asked for.
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
