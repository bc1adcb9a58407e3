/** Answers the audit's export, its signed head, and its key. */
import { Effect, Schema, Stream } from "effect"
import { HttpServerResponse } from "effect/http"
import { exported, partOf } from "#actors/system/export.ts"
import { LogStanding } from "#actors/system/log-standing.ts"
import { Notary, newestTree, signedHead } from "#actors/system/notary.ts"
import type { Log, LogUnavailable } from "#events/log.ts"
import { BackendUnavailable, Invalid, NotFound } from "#schemas/system/rejection.ts"

interface ExportAsked {
  readonly query: {
    readonly since?: number
    readonly until?: number
    readonly service?: string
    readonly aggregate?: string
  }
}

const unavailable = ({ detail }: LogUnavailable) => new BackendUnavailable({ detail })
const encodeUnavailable = Schema.encodeSync(BackendUnavailable)

/** The log as lines, as fast as they are taken. */
export const exportAudit = Effect.fnUntraced(function* ({ query }: ExportAsked) {
  const { since, until, service, aggregate } = query
  const part = partOf(service, aggregate)
  if (part === undefined) {
    const detail = "Ask for a service and a kind, or for service.aggregate.id alone."
    return yield* new Invalid({ detail })
  }
  const context = yield* Effect.context<Log | Notary>()
  const lines = exported({ part, since, until }).pipe(
    // The status is sent by then.
    Stream.catchTag("LogUnavailable", (failure) =>
      Stream.make(`${JSON.stringify({ error: encodeUnavailable(unavailable(failure)) })}\n`),
    ),
    Stream.encodeText,
    Stream.provideContext(context),
  )
  return HttpServerResponse.stream(lines, { contentType: "application/x-ndjson" })
})

export const auditHead = Effect.gen(function* () {
  const { key } = yield* Notary
  const tree = yield* newestTree
  const head = yield* signedHead
  if (tree !== undefined && head !== undefined) return { size: tree.size, head, key: key.verifier }
  return yield* new NotFound({
    detail: "Nothing of the log is sealed yet: see audit.checkpoint_seconds.",
  })
}).pipe(Effect.catchTag("LogUnavailable", (failure) => Effect.fail(unavailable(failure))))

export const auditKey = Effect.map(Notary, ({ key }) => key)

export const logFigures = Effect.flatMap(LogStanding, ({ figures }) =>
  Effect.mapError(figures, unavailable),
)
