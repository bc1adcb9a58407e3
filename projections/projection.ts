import { Schema } from "effect"
import type { Compilable, Kysely } from "kysely"
import { type Commit, isPartOf, type Part, parseStream, type Recorded } from "#events/log.ts"
import type { Write } from "#projections/statement.ts"
import type { Message } from "#schemas/message.ts"

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
}

/**
 * Declares the projection of one kind of aggregate: a plain function from event to writes.
 *
 * Events are decoded by their schema, which upcasts what older versions wrote.
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
  return { part, create, project: (message, place) => project(decode(message), place) }
}

/** Every write that a commit makes, in the order of its events. */
export const writesOf = <Tables>(
  projections: ReadonlyArray<Projection<Tables>>,
  { position, stream, commit }: Recorded,
): ReadonlyArray<Write> => {
  const { id } = parseStream(stream)
  const readers = projections.filter(({ part }) => isPartOf(part, stream))
  return commit.events.flatMap((event, index) =>
    readers.flatMap(({ project }) => project(event, { position, index, stream, id, commit })),
  )
}
