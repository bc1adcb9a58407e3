/** The role `actors`: executes commands from the bus. Source: decision 0140. */
import { Effect, Scope } from "effect"
import { serveCommands } from "#adapters/bus/commands.ts"
import { serveWorkers } from "#adapters/share-protection/worker-commands.ts"
import { NatsConnection, NatsServer } from "#bus"
import type { Settings } from "#schemas/settings.ts"
import { kinds_of } from "#server/aggregate-kinds.ts"
import { serveEntry } from "#server/share-protection/worker-entry.ts"

/**
 * Serves the commands of the enabled services and of the system, until the scope closes. Any
 * process with this role may respond: the log's version check handles conflicts.
 */
export const actors = Effect.fnUntraced(function* ({ services }: Settings) {
  const { connection } = yield* NatsConnection
  // Close them in parallel: if the bus hangs, each waits for it.
  const all = yield* Scope.fork(yield* Effect.scope, "parallel")
  const begin = <A, E, R>(serving: Effect.Effect<A, E, R>) =>
    Effect.flatMap(Scope.fork(all), (own) => Scope.provide(serving, own))
  for (const service of ["system", ...services] as const) {
    yield* begin(serveCommands(connection, service, kinds_of[service]))
  }
  if (!services.includes("share-protection")) return
  yield* begin(serveWorkers(connection))
  const { users } = yield* NatsServer
  if (users !== undefined) yield* begin(serveEntry(connection, users))
})
