/**
 * Leases: of all who may do a piece of work, one does it at a time.
 *
 * Source: DESIGN of the running system, 7.
 */
import { Context, type Effect } from "effect"

export class Leases extends Context.Service<
  Leases,
  {
    /**
     * Waits for the lease `name`, then for `elect`, and runs `work` with what that answered.
     *
     * `elect` appends the commit that tells everybody of the new holder; its position is the
     * fence: aggregates refuse commands that carry an older one, and so a holder that was thought
     * dead. When the lease is lost, both are interrupted, and it begins again. When `work` ends,
     * the lease is free and this ends likewise.
     */
    readonly hold: <A, E, R>(
      name: string,
      elect: Effect.Effect<number, E, R>,
      work: (fence: number) => Effect.Effect<A, E, R>,
    ) => Effect.Effect<A, E, R>
  }
>()("actors/Leases") {}
