/**
 * Commands: the only way to change an aggregate.
 *
 * Source: DESIGN of the running system, "One path for every change".
 */
import { Context, type Effect, Schema } from "effect"
import type { AnyDecider, Decider } from "#actors/decider.ts"
import type { Origin } from "#events/log.ts"
import type { Message } from "#schemas/message.ts"

/** A command and the aggregate it is for. */
export interface Addressed<out Rejection> {
  readonly to: AnyDecider<Rejection>
  readonly id: string
  readonly command: unknown
}

/** Addresses `command` to the aggregate `id`. */
export const address = <Command, Event extends Message, State, Rejection>(
  to: Decider<Command, Event, State, Rejection>,
  id: string,
  command: Command,
): Addressed<Rejection> => ({ to, id, command })

/** `<service>.<aggregate>.<id>` */
export const streamOf = ({ to, id }: Addressed<unknown>) => `${to.name}.${id}`

/**
 * The command was not executed: the log was unreachable, or every attempt lost to another writer.
 * With `is_reused`, its id belongs to an earlier command whose fingerprint differs.
 */
export class Unavailable extends Schema.TaggedError<Unavailable>()("Unavailable", {
  detail: Schema.String,
  is_reused: Schema.optionalKey(Schema.Boolean),
}) {}

export class Commands extends Context.Service<
  Commands,
  {
    /**
     * Returns the log position that includes the commands' effects, or the first rejection.
     *
     * The batch is atomic, and idempotent by `origin.command_id`: sending it again returns the same
     * result. The same id with a different fingerprint fails with Unavailable.
     */
    readonly send: <Rejection>(
      origin: Origin,
      ...commands: ReadonlyArray<Addressed<Rejection>>
    ) => Effect.Effect<number, Rejection | Unavailable>
  }
>()("actors/Commands") {}
