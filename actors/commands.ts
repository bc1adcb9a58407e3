/**
 * Commands: the one way in which anything changes.
 *
 * Source: DESIGN of the running system, "One path for every change".
 */
import { Context, type Effect, Schema } from "effect"
import type { AnyDecider, Decider } from "#actors/decider.ts"
import type { Origin } from "#events/log.ts"
import type { Message } from "#schemas/message.ts"

/** A command on its way to one aggregate. */
export interface Addressed<out Rejection> {
  readonly to: AnyDecider<Rejection>
  readonly id: string
  readonly command: unknown
}

/** `command` for the aggregate `id`. */
export const address = <Command, Event extends Message, State, Rejection>(
  to: Decider<Command, Event, State, Rejection>,
  id: string,
  command: Command,
): Addressed<Rejection> => ({ to, id, command })

/** `<service>.<aggregate>.<id>` */
export const streamOf = ({ to, id }: Addressed<unknown>) => `${to.name}.${id}`

/**
 * The command was not carried out: the log was out of reach, or others were always faster. Or
 * `is_reused`: under its id something else was done before, by the fingerprints of both.
 */
export class Unavailable extends Schema.TaggedError<Unavailable>()("Unavailable", {
  detail: Schema.String,
  is_reused: Schema.optionalKey(Schema.Boolean),
}) {}

export class Commands extends Context.Service<
  Commands,
  {
    /**
     * Answers the log position that shows what the commands did, or the first rejection.
     *
     * All of the commands happen, or none. Sent again under the same `origin.command_id` they are
     * done once, and answered alike; with another fingerprint they are Unavailable.
     */
    readonly send: <Rejection>(
      origin: Origin,
      ...commands: ReadonlyArray<Addressed<Rejection>>
    ) => Effect.Effect<number, Rejection | Unavailable>
  }
>()("actors/Commands") {}
