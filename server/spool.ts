/** A service's spool in the data folder, and the process that records it in the log. */
import { join } from "node:path"
import { Effect, type Schema } from "effect"
import type { FactContext } from "#actors/fact-log.ts"
import { type FactKind, spooler } from "#actors/spooler.ts"
import { spoolSqlite } from "#adapters/spool/sqlite.ts"
import type { Message } from "#schemas/message.ts"
import type { Settings } from "#schemas/settings.ts"

/** Opens the spool of a service's facts and records them until the scope closes. Never fails. */
export const openSpool = Effect.fnUntraced(function* <
  Fact,
  Command,
  Event extends Message,
  State extends { readonly context: FactContext },
  Rejection extends { readonly detail: string },
>(
  { data }: Pick<Settings, "data">,
  node_id: string,
  kind: FactKind<Fact, Command, Event, State, Rejection> & {
    readonly service: string
    readonly fact: Schema.ConstraintCodec<Fact, unknown>
  },
) {
  const spool = yield* spoolSqlite(join(data.dir, `spool-${kind.service}.sqlite`), kind.fact)
  yield* Effect.forkScoped(spooler({ spool, kind, node_id }))
  return spool
})
