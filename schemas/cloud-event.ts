/**
 * What subscribers get: CloudEvents 1.0, structured JSON, one object per event.
 *
 * Source: DECISIONS "published events"; CloudEvents 1.0.2. Extension attributes are lower case
 * letters, as that standard asks.
 */
import { Schema } from "effect"

export const CloudEvent = Schema.Struct({
  specversion: Schema.Literal("1.0"),
  /**
   * `<position>.<index>`: the commit's place in the log, and the event's in the commit. After a
   * restore from a backup `.<restore_id>`, as the same place was another commit's before.
   */
  id: Schema.String,
  /** `/almanac/<service>/<aggregate>` */
  source: Schema.String,
  /** What happened: past tense, snake case. */
  type: Schema.String,
  /** The aggregate's id. */
  subject: Schema.String,
  /** RFC 3339 in UTC. */
  time: Schema.String,
  datacontenttype: Schema.Literal("application/json"),
  /** The commit's place in the log, as GET /v1/admin/audit shows it. */
  position: Schema.Int,
  actor: Schema.String,
  requestid: Schema.optionalKey(Schema.String),
  correlationid: Schema.optionalKey(Schema.String),
  /** Whose it is: only this project's tokens see it. Absent: nobody's in particular. */
  projectid: Schema.optionalKey(Schema.String),
  data: Schema.Record(Schema.String, Schema.Unknown),
})
export type CloudEvent = typeof CloudEvent.Type

/** Whether an event says that the log was restored: every subscriber gets it. */
export const isRestoration = ({ source, type }: Pick<CloudEvent, "source" | "type">) =>
  type === "state_restored" && source === "/almanac/system/restoration"
