/** Rejects names of services and event types that are not published, such as misspelled ones. */
import { Context, Effect } from "effect"
import { nearest, quoted } from "#schemas/setting.ts"
import { Invalid } from "#schemas/system/rejection.ts"

/** The published types by service; undefined: unknown, and every name is accepted. */
export const PublishedNames = Context.Reference<
  ReadonlyArray<readonly [service: string, types: object]> | undefined
>("gateway/PublishedNames", { defaultValue: () => undefined })

/** Names, and the request's field that contains them. */
interface Named {
  readonly field: string
  readonly names: ReadonlyArray<string>
}

/** Rejects the first unknown service, and the first unknown type. */
export const checkPublished = Effect.fnUntraced(function* (services: Named, types: Named) {
  const published = yield* PublishedNames
  if (published === undefined) return
  const all_types = published.flatMap(([, of_service]) => Object.keys(of_service))
  yield* among(services, "service", new Set(published.map(([service]) => service)))
  yield* among(types, "event type", new Set(all_types))
})

const among = ({ field, names }: Named, kind: string, known: ReadonlySet<string>) => {
  const wrong = names.find((name) => !known.has(name))
  if (wrong === undefined) return Effect.void
  const near = nearest(wrong, [...known])
  const hint = near === undefined ? "GET /asyncapi.json lists them" : `did you mean ${near}?`
  return Effect.fail(
    new Invalid({ detail: `${field}: there is no ${kind} ${quoted(wrong)}; ${hint}` }),
  )
}
