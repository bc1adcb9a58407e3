/**
 * The published event format: CloudEvents 1.0 in structured JSON, one object per event.
 *
 * Source: DECISIONS "published events"; CloudEvents 1.0.2. Extension attributes have lower-case
 * names, as the standard requires.
 */
import { Schema } from "effect"

export const CloudEvent = Schema.Struct({
  specversion: Schema.Literal("1.0"),
  /**
   * `<position>.<index>`: the commit's position in the log, and the event's index in the commit.
   * After a restore from a backup `.<restore_id>` follows, because the position belonged to another
   * commit before.
   */
  id: Schema.String,
  /** `/almanac/<service>/<aggregate>` */
  source: Schema.String,
  /** The event's name: past tense, snake case. */
  type: Schema.String,
  /** The aggregate's id. */
  subject: Schema.String,
  /** RFC 3339 in UTC. */
  time: Schema.String,
  datacontenttype: Schema.Literal("application/json"),
  /** The commit's position in the log, as in GET /v1/admin/audit. */
  position: Schema.Int,
  actor: Schema.String,
  requestid: Schema.optionalKey(Schema.String),
  correlationid: Schema.optionalKey(Schema.String),
  /** The project whose tokens receive the event; absent if it belongs to no project. */
  projectid: Schema.optionalKey(Schema.String),
  data: Schema.Record(Schema.String, Schema.Unknown),
})
export type CloudEvent = typeof CloudEvent.Type

/** Whether the event reports a restore of the log, which every subscriber receives. */
export const isRestoration = ({ source, type }: Pick<CloudEvent, "source" | "type">) =>
  type === "state_restored" && source === "/almanac/system/restoration"
