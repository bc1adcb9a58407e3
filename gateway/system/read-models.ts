/** Lists the read models, and builds one again. */
import { Context, Effect, Layer, Schedule, Schema, Semaphore, Stream } from "effect"
import { type HttpServerRequest, HttpServerResponse } from "effect/http"
import { Log, type LogUnavailable, type Part } from "#events/log.ts"
import type { DatabaseUnusable } from "#projections/database.ts"
import type { ReadModel } from "#projections/read-model.ts"
import { BackendUnavailable, NotFound } from "#schemas/system/rejection.ts"

/** One read model for its operators. */
export interface Operated
  extends Pick<ReadModel<unknown>, "position" | "rebuild" | "difference" | "dump"> {
  /** The part of the log that it shows. */
  readonly part: Part
}

/** The read models of this process by name, which is their service's. */
export class ReadModels extends Context.Service<ReadModels, ReadonlyMap<string, Operated>>()(
  "gateway/ReadModels",
) {
  /** These read models, each built again by one request after another. */
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

/** How often a rebuild that is streamed says that it goes on, in seconds. */
const sign_seconds = 1

const unavailable = ({ detail }: LogUnavailable | DatabaseUnusable) =>
  new BackendUnavailable({ detail })

/** Every read model, by name. */
export const listReadModels = Effect.gen(function* () {
  const log = yield* Log
  const models = yield* ReadModels
  const read_models = yield* Effect.forEach([...models], ([name, { part, position }]) =>
    Effect.gen(function* () {
      const shown = yield* position
      const head = yield* Effect.mapError(log.head(part), unavailable)
      return { name, position: shown, behind: Math.max(0, head - shown) }
    }),
  )
  return { read_models: read_models.toSorted((one, other) => one.name.localeCompare(other.name)) }
})

const encodeUnavailable = Schema.encodeSync(BackendUnavailable)

/** The answer as lines: a sign of life each second, and the outcome last. */
const lines = (name: string, work: Effect.Effect<object, BackendUnavailable>) => {
  const outcome = work.pipe(
    Effect.catch((failure) => Effect.succeed({ error: encodeUnavailable(failure) })),
  )
  const signs = Stream.fromSchedule(Schedule.spaced(`${sign_seconds} seconds`)).pipe(
    Stream.map((n) => ({ name, seconds: (n + 1) * sign_seconds })),
  )
  return Stream.merge(Stream.fromEffect(outcome), signs, { haltStrategy: "left" }).pipe(
    Stream.map((line) => `${JSON.stringify(line)}\n`),
    Stream.encodeText,
  )
}

interface Asked {
  readonly params: { readonly name: string }
  readonly request: HttpServerRequest.HttpServerRequest
}

/** Does a work of minutes with a read model: at once, or as lines where those are asked for. */
const working = <A extends object>(
  status: number,
  work: (model: Operated, name: string) => Effect.Effect<A, LogUnavailable | DatabaseUnusable>,
) =>
  Effect.fnUntraced(function* ({ params, request }: Asked) {
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

/** Builds one from nothing, answers when it shows the log again; until then all see the old one. */
export const rebuildReadModel = working(202, ({ rebuild }, name) =>
  Effect.map(rebuild, (position) => ({ name, position })),
)

/** Builds one beside, and answers what differs; what is kept is not touched. */
export const compareReadModel = working(200, ({ difference }, name) =>
  Effect.map(difference, (found) => ({ name, ...found })),
)
