/** The table of routes: finds the endpoint of a request, with its annotations for the door. */
import {
  Cause,
  Context,
  Effect,
  type Exit,
  FileSystem,
  type Layer,
  Path,
  Predicate,
  Scope,
} from "effect"
import {
  Etag,
  FindMyWay,
  HttpPlatform,
  HttpRouter,
  type HttpServerRequest,
  type HttpServerResponse,
} from "effect/http"
import { HttpApi } from "effect/http-api"
import { type Access, Needs, PublicWhen } from "#gateway/access.ts"
import type { DirectRoute } from "#gateway/direct.ts"
import { type Envelope, envelopeOf } from "#gateway/envelope.ts"
import {
  Accepts,
  BodyLimit,
  type BodyLimitOf,
  Streamed,
  Ticketed,
  Unhurried,
  url_length_max,
} from "#gateway/limits.ts"
import type { Behind } from "#projections/waiters.ts"
import type { Settings } from "#schemas/settings.ts"

/** The effect of a router: responds to the request in its context, or fails. */
export type App = Effect.Effect<
  HttpServerResponse.HttpServerResponse,
  unknown,
  HttpServerRequest.HttpServerRequest | Scope.Scope
>

export interface Service<E, R> {
  readonly name: string
  readonly api: HttpApi.Constraint
  /** The result of `appOf` for the API with its handlers. */
  readonly routes: Effect.Effect<App, E, R>
  /** Waits until the service's read model shows a position. */
  readonly waitFor?: (position: number) => Effect.Effect<void, Behind>
  /** Why the service is not ready; undefined when it is. */
  readonly ready?: Effect.Effect<string | undefined>
  /** A note for operators about a service that is ready. */
  readonly note?: Effect.Effect<string | undefined>
  /** Endpoints of `api` that are direct routes, once its routes have started. */
  readonly direct?: Effect.Effect<ReadonlyArray<DirectRoute>>
}

/** The services that HttpApi requires. */
type Platform = Etag.Generator | FileSystem.FileSystem | HttpPlatform.HttpPlatform | Path.Path

/**
 * The app of an API. Its handlers only get the context `known`, because HttpApi copies the routes'
 * context for each request, at a tenth of a microsecond per service.
 */
export const appOf = <E, K>(
  routes: Layer.Layer<
    never,
    E,
    HttpRouter.HttpRouter | Platform | K | HttpRouter.Request.From<"Requires", K>
  >,
  known: Context.Context<K>,
): Effect.Effect<App, E, Platform | Scope.Scope> =>
  Effect.contextWith((around: Context.Context<Platform | Scope.Scope>) =>
    Effect.setContext(
      // The routes get `known` when they start, so a request need not provide it.
      HttpRouter.toHttpEffect(routes) as Effect.Effect<App, E, Platform | Scope.Scope | K>,
      Context.merge(platform(around), known),
    ),
  )

const platform = Context.pick(
  Etag.Generator,
  FileSystem.FileSystem,
  HttpPlatform.HttpPlatform,
  Path.Path,
  Scope.Scope,
  HttpRouter.RouterConfig,
)

/** A service on the listener. One without an app could not start: its paths respond with 503. */
export interface Mounted {
  readonly name: string
  readonly api: HttpApi.Top
  readonly app: App | undefined
  readonly waitFor: (position: number) => Effect.Effect<void, Behind>
  readonly ready: Effect.Effect<string | undefined>
  readonly note?: Effect.Effect<string | undefined>
  readonly direct?: ReadonlyArray<DirectRoute>
}

/** An endpoint with its annotations for the door. */
export interface Route {
  readonly service: Mounted
  readonly method: string
  readonly path: string
  readonly envelope: Envelope
  readonly access: Access
  readonly publicWhen: ((settings: Settings) => boolean) | undefined
  readonly accepts: ReadonlySet<string>
  /**
   * The endpoint below this path that accepts a body of this type, such as `POST /v1/blobs/stream`.
   */
  readonly pathForType: (type: string) => string | undefined
  readonly bodyLimit: BodyLimitOf
  readonly is_streamed: boolean
  readonly is_unhurried: boolean
  readonly ticketed: "accepts" | "issues" | undefined
}

/** A route, or the methods that the path supports instead of the requested one. */
export type Found =
  | { readonly route: Route; readonly params: Readonly<Record<string, string | undefined>> }
  | { readonly allow: ReadonlyArray<string> }

export const isRoute = (
  found: Found | undefined,
): found is Extract<Found, { readonly route: Route }> => found !== undefined && "route" in found

/**
 * The door and Effect's API parse paths in the same way: doubled and trailing slashes are ignored.
 */
const router_config = {
  ignoreTrailingSlash: true,
  ignoreDuplicateSlashes: true,
  maxParamLength: url_length_max,
}

/** Starts a service's routes. A failure leaves the other services intact. */
export const mount = <E, R>(service: Service<E, R>) =>
  Effect.gen(function* () {
    const { name, api, routes, waitFor, ready, note, direct } = service
    const exit: Exit.Exit<App, E> = yield* routes.pipe(
      Effect.provideService(HttpRouter.RouterConfig, router_config),
      Effect.exit,
    )
    const started = exit._tag === "Success"
    const why = started ? undefined : reasonOf(exit.cause)
    if (!started && detailOf(exit.cause) !== undefined) yield* Effect.logError(`${name} ${why}`)
    else if (!started) yield* Effect.logError(`${name} could not start.`, exit.cause)
    const mounted: Mounted = {
      name,
      // Every HttpApi has these properties; the library erases their types in this way.
      api: api as HttpApi.Top,
      app: started ? exit.value : undefined,
      waitFor: waitFor ?? (() => Effect.void),
      ready: why === undefined ? (ready ?? Effect.succeed(undefined)) : Effect.succeed(why),
      ...(note === undefined ? {} : { note }),
      ...(started && direct !== undefined ? { direct: yield* direct } : {}),
    }
    return mounted
  })

/** The detail of an expected failure, which is enough to fix it. */
const detailOf = (cause: Cause.Cause<unknown>) => {
  const error = Cause.squash(cause)
  return Predicate.hasProperty(error, "detail") ? String(error.detail) : undefined
}

const reasonOf = (cause: Cause.Cause<unknown>) => {
  const reason = detailOf(cause) ?? String(Cause.squash(cause))
  return `could not start: ${reason.split("\n", 1)[0]}`
}

/** Methods with a body; with other methods the payload is in the query. */
const with_body = new Set(["POST", "PUT", "PATCH"])

/** Finds the endpoints of requests. Two endpoints with the same method and path are a defect. */
export const routesOf = (services: ReadonlyArray<Mounted>) => {
  const router = FindMyWay.make<Route>(router_config)
  const methods = new Set<string>()
  const all: Array<Pick<Route, "method" | "path" | "accepts">> = []
  const pathForTypeBelow = (above: string) => (type: string) => {
    const taker = all.find(({ path, accepts }) => path.startsWith(above) && accepts.has(type))
    return taker && `${taker.method} ${taker.path}`
  }
  for (const service of services) {
    HttpApi.reflect(service.api, {
      onGroup: () => undefined,
      onEndpoint: ({ endpoint, mergedAnnotations: notes }) => {
        const { method, path, payload } = endpoint
        const types = Context.get(notes, Accepts) ?? (with_body.has(method) ? payload.keys() : [])
        const accepts = new Set(types)
        methods.add(method)
        all.push({ method, path, accepts })
        // An endpoint's path begins with a slash: HttpApiEndpoint's own type requires it.
        router.on(method, path as `/${string}`, {
          service,
          method,
          path,
          envelope: envelopeOf(path),
          access: Context.get(notes, Needs),
          publicWhen: Context.get(notes, PublicWhen),
          accepts,
          pathForType: pathForTypeBelow(`${path}/`),
          bodyLimit: Context.get(notes, BodyLimit),
          is_streamed: Context.get(notes, Streamed),
          is_unhurried: Context.get(notes, Unhurried),
          ticketed: Context.get(notes, Ticketed),
        })
      },
    })
  }
  const find = (method: string, path: string) =>
    router.find(method, path) ?? (method === "HEAD" ? router.find("GET", path) : undefined)

  return (method: string, path: string): Found | undefined => {
    const found = find(method, path)
    if (found !== undefined) return { route: found.handler, params: found.params }
    const allow = [...methods, "HEAD"].filter((other) => find(other, path) !== undefined)
    return allow.length > 0 ? { allow: [...new Set(allow)] } : undefined
  }
}
