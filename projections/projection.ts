import type { Schema } from "effect"
import type { Compilable, Kysely } from "kysely"
import { type Commit, isPartOf, type Part, parseStream, type Recorded } from "#events/log.ts"
import type { Write } from "#projections/statement.ts"
import { decoder } from "#schemas/as-is.ts"
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
  const decode = decoder(event)
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
  const decode = decoder(event)
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

/**
 * Every write that a commit makes, in the order of its events; then those of the projections that
 * take all of them at once, which have tables of their own. `slice_events` cuts it into stretches
 * of so many events, each made when it is asked for.
 */
export function* writesOf<Tables>(
  projections: ReadonlyArray<Projection<Tables>>,
  { position, stream, commit }: Recorded,
  slice_events = Number.POSITIVE_INFINITY,
): Generator<ReadonlyArray<Write>, void> {
  const { id } = parseStream(stream)
  const readers = projections.filter(({ part }) => isPartOf(part, stream))
  if (readers.length === 0) return
  const single = readers.filter(({ projectAll }) => projectAll === undefined)
  const { events } = commit
  let writes: Array<Write> = []
  for (const [index, event] of single.length === 0 ? [] : events.entries()) {
    if (index > 0 && index % slice_events === 0) {
      yield writes
      writes = []
    }
    const place = { position, index, stream, id, commit }
    for (const { project } of single) writes.push(...project(event, place))
  }
  for (const { projectAll } of readers) {
    if (projectAll) writes.push(...projectAll(events, { position, stream, id, commit }))
  }
  yield writes
}
