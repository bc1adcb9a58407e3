/**
 * The types of published events: a contract with subscribers, only ever added to.
 *
 * Each service lists its own in `schemas/<service>/published.ts`; docs/events.md shows them all.
 */
import type { Schema } from "effect"

/** What subscribers are promised of one type. */
export interface PublishedType<Fields extends Schema.Struct.Fields = Schema.Struct.Fields> {
  /** The bus subject is `events.<service>.<aggregate>.<type>`. */
  readonly aggregate: string
  /** What the event's `subject` is the id of. */
  readonly subject: string
  /** When it is told, as a sentence. */
  readonly told: string
  /** The fields of its `data`, each with a description. */
  readonly data: Schema.Struct<Fields>
}

/** Types by name: past tense, snake case. */
export type PublishedTypes = Readonly<Record<string, PublishedType>>
