/**
 * The types of published events: a contract with subscribers, which is only ever extended.
 *
 * Each service declares its types in `schemas/<service>/published.ts`; docs/events.md documents
 * them.
 */
import type { Schema } from "effect"

/** The contract of one event type. */
export interface PublishedType<Fields extends Schema.Struct.Fields = Schema.Struct.Fields> {
  /** The bus subject is `events.<service>.<aggregate>.<type>`. */
  readonly aggregate: string
  /** The resource whose id is the event's `subject`. */
  readonly subject: string
  /** When the event is published, as a sentence. */
  readonly when: string
  /** The fields of its `data`, each with a description. */
  readonly data: Schema.Struct<Fields>
}

/** Types by name: past tense, snake case. */
export type PublishedTypes = Readonly<Record<string, PublishedType>>
