/** Lists, rebuilds and checks read models. */
import { Context, Effect, Layer, Schedule, Schema, Semaphore, Stream } from "effect"
import { type HttpServerRequest, HttpServerResponse } from "effect/http"
import { Log, type LogUnavailable, type Part } from "#events/log.ts"
import type { DatabaseUnusable } from "#projections/database.ts"
import type { ReadModel } from "#projections/read-model.ts"
import { BackendUnavailable, NotFound } from "#schemas/system/rejection.ts"

/** A read model, as operators use it. */
export interface Operated
  extends Pick<ReadModel<unknown>, "position" | "rebuild" | "difference" | "dump"> {
  /** The part of the log that the read model shows. */
  readonly part: Part
}

/** The read models of this process by the name of their service. */
export class ReadModels extends Context.Service<ReadModels, ReadonlyMap<string, Operated>>()(
  "gateway/ReadModels",
) {
  /** A layer of these read models. Requests rebuild each one at a time. */
  static readonly layer = (models: ReadonlyMap<string, Operated>) =>
    Layer.sync(
      this,
      () =>
        new Map(
          [...models].map(([name, model]) => {
            const turn = Semaphore.makeUnsafe(1)
            return [name, { ...model, rebuild: turn.withPermit(model.rebuild) }]
          }),
        ),
    )
}

/** How often a streamed rebuild reports progress, in seconds. */
const progress_seconds = 1

const unavailable = ({ detail }: LogUnavailable | DatabaseUnusable) =>
  new BackendUnavailable({ detail })

/** Every read model, by name. */
export const listReadModels = Effect.gen(function* () {
  const log = yield* Log
  const models = yield* ReadModels
  const read_models = yield* Effect.forEach([...models], ([name, { part, position }]) =>
    Effect.gen(function* () {
      const own = yield* position
      const head = yield* Effect.mapError(log.head(part), unavailable)
      return { name, position: own, behind: Math.max(0, head - own) }
    }),
  )
  return { read_models: read_models.toSorted((one, other) => one.name.localeCompare(other.name)) }
})

const encodeUnavailable = Schema.encodeSync(BackendUnavailable)

/** The response as lines: progress each second, and the outcome last. */
const lines = (name: string, work: Effect.Effect<object, BackendUnavailable>) => {
  const outcome = work.pipe(
    Effect.catch((failure) => Effect.succeed({ error: encodeUnavailable(failure) })),
  )
  const progress = Stream.fromSchedule(Schedule.spaced(`${progress_seconds} seconds`)).pipe(
    Stream.map((n) => ({ name, seconds: (n + 1) * progress_seconds })),
  )
  return Stream.merge(Stream.fromEffect(outcome), progress, { haltStrategy: "left" }).pipe(
    Stream.map((line) => `${JSON.stringify(line)}\n`),
    Stream.encodeText,
  )
}

interface OperationRequest {
  readonly params: { readonly name: string }
  readonly request: HttpServerRequest.HttpServerRequest
}

/**
 * An operation that takes minutes: a single response, or lines with progress if the client accepts
 * them.
 */
const operation = <A extends object>(
  status: number,
  work: (model: Operated, name: string) => Effect.Effect<A, LogUnavailable | DatabaseUnusable>,
) =>
  Effect.fnUntraced(function* ({ params, request }: OperationRequest) {
    const { name } = params
    const model = (yield* ReadModels).get(name)
    if (model === undefined) {
      return yield* new NotFound({ detail: `There is no read model ${name} here.` })
    }
    const done = Effect.mapError(work(model, name), unavailable)
    if (!request.headers.accept?.includes("application/x-ndjson")) return yield* done
    return HttpServerResponse.stream(lines(name, done), {
      status,
      contentType: "application/x-ndjson",
    })
  })

/** Rebuilds a read model, and responds once it is current; until then queries use the old one. */
export const rebuildReadModel = operation(202, ({ rebuild }, name) =>
  Effect.map(rebuild, (position) => ({ name, position })),
)

/** Builds a second read model, and responds with the differences; the first one is unchanged. */
export const compareReadModel = operation(200, ({ difference }, name) =>
  Effect.map(difference, (found) => ({ name, ...found })),
)
