/**
 * Leases: one process at a time does a piece of work.
 *
 * A lease avoids duplicate work; it does not guarantee exclusion: a process that resumes after a
 * pause still believes that it holds its lease. Safety comes from the version check of appends,
 * from command ids, from the fence for knowledge that is in no aggregate, and from `inTerm` before
 * every send.
 *
 * Source: DESIGN of the running system, 7; decision 0141.
 */
import { Context, Effect } from "effect"
import { Unavailable } from "#actors/commands.ts"

export class Leases extends Context.Service<
  Leases,
  {
    /**
     * Waits for the lease `name`, runs `elect`, and then runs `work` with its result.
     *
     * `elect` appends the commit that announces the new holder. Its position is the fence:
     * aggregates reject commands with an older one. If the lease is lost, both are interrupted and
     * start again. When `work` ends, the lease is released and this effect ends with its result.
     * Both run within the `Term` of the lease.
     */
    readonly hold: <A, E, R>(
      name: string,
      elect: Effect.Effect<number, E, R>,
      work: (fence: number) => Effect.Effect<A, E, R>,
    ) => Effect.Effect<A, E, R>
    /** The current holder of the lease `name`, in any process; undefined if it is free. */
    readonly holderOf: (name: string) => Effect.Effect<string | undefined, Unavailable>
  }
>()("actors/Leases") {}

/** How long a lease is held, by the holder's clock. Without a lease the term never ends. */
export interface LeaseTerm {
  readonly isOver: Effect.Effect<boolean>
}

export const Term = Context.Reference<LeaseTerm>("actors/Term", {
  defaultValue: () => ({ isOver: Effect.succeed(false) }),
})

/**
 * Runs the effect, or fails with Unavailable if the current lease has expired: a process that
 * resumes after a pause sends nothing in the moment before it is interrupted.
 */
export const inTerm = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.gen(function* () {
    const { isOver } = yield* Term
    if (yield* isOver) return yield* new Unavailable({ detail: "The lease has expired." })
    return yield* effect
  })
