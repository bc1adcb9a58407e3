/** Work that only one process of all may do at a time. */
import { Cause, Clock, DateTime, Effect } from "effect"
import { v7 } from "uuid"
import { address, Commands, type Unavailable } from "#actors/commands.ts"
import { inTerm, Leases } from "#actors/leases.ts"
import { Election } from "#actors/system/election.ts"
import { newTrouble } from "#actors/trouble.ts"
import { LogGuard } from "#events/log-guard.ts"
import { ElectLeader } from "#schemas/system/election.ts"

/** Pause before work that failed of the world is taken up again, in milliseconds. */
const retry_ms = 1000

/** Where leases are kept. */
export const leases_bucket = "ALMANAC_LEASES"

/** How long a holder that fell silent keeps its leases, in milliseconds. */
export const lease_ttl_ms = 10_000

/**
 * Does `work` in the background, whenever this node holds the lease `name`, for as long as the
 * scope lives. `fence` is the position of the commit that tells of the election.
 */
export const leased = Effect.fnUntraced(function* <E, R>(
  name: string,
  holder: string,
  work: (fence: number) => Effect.Effect<unknown, E, R>,
) {
  // On a log that takes no commits no leader is elected.
  if ((yield* LogGuard).trouble() !== undefined) return
  const leases = yield* Leases
  const commands = yield* Commands
  const elect = Effect.gen(function* () {
    const at = DateTime.formatIso(DateTime.makeUnsafe(yield* Clock.currentTimeMillis))
    const origin = { command_id: v7(), actor: `node:${holder}`, at }
    // Told after another's election, ours would pass for the later one.
    return yield* inTerm(
      commands.send(origin, address(Election, name, ElectLeader.make({ holder }))),
    )
  })
  const trouble = newTrouble()
  const pause = Effect.fnUntraced(function* (cause: Cause.Cause<unknown>) {
    if (Cause.hasInterruptsOnly(cause)) return yield* Effect.failCause(cause)
    const { is_told, times, pause_ms } = yield* trouble
    if (is_told) yield* Effect.logWarning(`${name} begins again${times}.`, cause)
    // Each attempt is an election, which the log keeps. A bus may be back at any moment.
    yield* Effect.sleep(Cause.hasDies(cause) ? pause_ms : retry_ms)
  })
  yield* leases.hold<unknown, E | Unavailable, R | Commands>(name, elect, work).pipe(
    // Nobody else would take it up again: the fiber's end is seen by no one.
    Effect.catchCause(pause),
    Effect.forever,
    Effect.forkScoped,
  )
})
