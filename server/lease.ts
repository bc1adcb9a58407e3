/** Work that only one process at a time may do. */
import { Cause, Clock, DateTime, Effect } from "effect"
import { v7 } from "uuid"
import { newBackoff } from "#actors/backoff.ts"
import { address, Commands, type Unavailable } from "#actors/commands.ts"
import { inTerm, Leases } from "#actors/leases.ts"
import { Election } from "#actors/system/election.ts"
import { LogGuard } from "#events/log-guard.ts"
import { ElectLeader } from "#schemas/system/election.ts"

/** Pause before a retry after an expected failure, in milliseconds. */
const retry_ms = 1000

/** The bucket of leases. */
export const leases_bucket = "ALMANAC_LEASES"

/** Time to live of a lease that its holder does not renew, in milliseconds. */
export const lease_ttl_ms = 10_000

/**
 * Runs `work` in the background whenever this node holds the lease `name`, until the scope closes.
 * `fence` is the position of the commit that records the election.
 */
export const withLease = Effect.fnUntraced(function* <E, R>(
  name: string,
  holder: string,
  work: (fence: number) => Effect.Effect<unknown, E, R>,
) {
  // Without commits, no leader can be elected.
  if ((yield* LogGuard).problem() !== undefined) return
  const leases = yield* Leases
  const commands = yield* Commands
  const elect = Effect.gen(function* () {
    const at = DateTime.formatIso(DateTime.makeUnsafe(yield* Clock.currentTimeMillis))
    const origin = { command_id: v7(), actor: `process:${name}`, at }
    // An election that is recorded after another holder's would count as the later one.
    return yield* inTerm(
      commands.send(origin, address(Election, name, ElectLeader.make({ holder }))),
    )
  })
  const backoff = newBackoff()
  const pause = Effect.fnUntraced(function* (cause: Cause.Cause<unknown>) {
    if (Cause.hasInterruptsOnly(cause)) return yield* Effect.failCause(cause)
    const { is_logged, times, pause_ms } = yield* backoff
    if (is_logged) yield* Effect.logWarning(`${name} failed and restarts${times}.`, cause)
    // Each attempt adds an election to the log, so repeated defects back off. The bus may recover
    // at any moment, so other failures do not.
    yield* Effect.sleep(Cause.hasDies(cause) ? pause_ms : retry_ms)
  })
  yield* leases.hold<unknown, E | Unavailable, R | Commands>(name, elect, work).pipe(
    // Nothing else would restart it: no one observes the end of this fiber.
    Effect.catchCause(pause),
    Effect.forever,
    Effect.forkScoped,
  )
})
