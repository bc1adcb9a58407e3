/**
 * Leases: of all who may do a piece of work, one does it at a time.
 *
 * A lease spares work, it does not protect facts: a process that stood still comes back believing
 * that it holds one. What keeps it from harm is the version that each append names, the ids of
 * commands, the fence where what it knows is in no aggregate, and `inTerm` before all that goes
 * out.
 *
 * Source: DESIGN of the running system, 7; decision 0141.
 */
import { Context, Effect } from "effect"
import { Unavailable } from "#actors/commands.ts"

export class Leases extends Context.Service<
  Leases,
  {
    /**
     * Waits for the lease `name`, then for `elect`, and runs `work` with what that answered.
     *
     * `elect` appends the commit that tells everybody of the new holder; its position is the
     * fence: an aggregate that a command tells what only the holder can know refuses an older one.
     * When the lease is lost, both are interrupted, and it begins again. When `work` ends, the
     * lease is free and this ends likewise. Both run under the `Term` of the lease.
     */
    readonly hold: <A, E, R>(
      name: string,
      elect: Effect.Effect<number, E, R>,
      work: (fence: number) => Effect.Effect<A, E, R>,
    ) => Effect.Effect<A, E, R>
    /** Who holds the lease `name` now, of whatever process; undefined: nobody. Unavailable. */
    readonly holderOf: (name: string) => Effect.Effect<string | undefined, Unavailable>
  }
>()("actors/Leases") {}

/** The time for which a lease is held, by the holder's own clock. Without a lease it never ends. */
export interface LeaseTerm {
  readonly isOver: Effect.Effect<boolean>
}

export const Term = Context.Reference<LeaseTerm>("actors/Term", {
  defaultValue: () => ({ isOver: Effect.succeed(false) }),
})

/**
 * Does it, unless the lease that this runs under has run out: who wakes from standing still sends
 * nothing more in the moment before it is interrupted. Unavailable.
 */
export const inTerm = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.gen(function* () {
    const { isOver } = yield* Term
    if (yield* isOver) return yield* new Unavailable({ detail: "The lease has run out." })
    return yield* effect
  })
