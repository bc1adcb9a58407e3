import { inspect } from "node:util"
import { Context, Effect, Exit, Layer, References, Schema, Scope, Tracer } from "effect"
import { HttpApi, HttpApiBuilder, HttpApiEndpoint, HttpApiGroup } from "effect/http-api"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { Needs } from "#gateway/access.ts"
import { credentialsIn } from "#gateway/door/admission.ts"
import { ErrorSettings } from "#gateway/envelope.ts"
import { url_length_max } from "#gateway/limits.ts"
import { RequestContext } from "#gateway/request-context.ts"
import { appOf } from "#gateway/routes.ts"
import { type Served, serveHttp } from "../world/http.ts"

class Known extends Context.Service<Known, string>()("test/Known") {}
class Stranger extends Context.Service<Stranger, string>()("test/Stranger") {}

const Seen = Schema.Struct({
  known: Schema.String,
  strangers: Schema.Array(Schema.String),
  correlation_id: Schema.String,
  detail_bytes_max: Schema.Int,
})

const api = HttpApi.make("seen").add(
  HttpApiGroup.make("seen")
    .add(
      HttpApiEndpoint.get("seen", "/v1/blobs/seen", { success: Seen }),
      HttpApiEndpoint.get("name", "/v1/blobs/seen/:name", {
        params: { name: Schema.String },
        success: Schema.Int,
      }),
    )
    .annotateEndpoints(Needs, "public"),
)

/** Reports its context in the response and in the log. */
const seen = Effect.gen(function* () {
  const context = yield* Effect.context<never>()
  yield* Effect.logInfo("seen by a handler")
  return {
    known: yield* Known,
    strangers: [...context.mapUnsafe.keys()].filter((key) => key === Stranger.key),
    correlation_id: (yield* RequestContext).correlation_id,
    detail_bytes_max: (yield* ErrorSettings)().max_detail_bytes,
  }
})

const handlers = HttpApiBuilder.group(api, "seen", (of) =>
  of.handle("seen", () => seen).handle("name", ({ params }) => Effect.succeed(params.name.length)),
)
const service = {
  name: "seen",
  api,
  routes: appOf(
    HttpApiBuilder.layer(api).pipe(Layer.provide(handlers)),
    Context.make(Known, "known"),
  ),
}

/** Not the default value. */
const max_detail_bytes = 99

const spans: Array<string> = []
const tracer = Tracer.make({
  span: (options) => {
    spans.push(options.name)
    return new Tracer.NativeSpan(options)
  },
})

let served: Served
const scope = Effect.runSync(Scope.make())
beforeAll(async () => {
  served = await Effect.runPromise(
    serveHttp([service], { settings: { error: { max_detail_bytes } } }).pipe(
      Effect.provideService(Stranger, "stranger"),
      Effect.provideService(Tracer.Tracer, tracer),
      Effect.provideService(References.TracerEnabled, true),
      Scope.provide(scope),
    ),
  )
})
afterAll(() => Effect.runPromise(Scope.close(scope, Exit.void)))

const ask = (id: string) => served.fetch("/v1/blobs/seen", { headers: { "x-request-id": id } })

describe("a handler's context", () => {
  it("holds its service's own, the door's and the request's, and nothing around it", async () => {
    expect(await (await ask("order-7")).json()).toEqual({
      known: "known",
      strangers: [],
      correlation_id: "order-7",
      detail_bytes_max: max_detail_bytes,
    })
  })

  it("is each request's own", async () => {
    const ids = Array.from({ length: 20 }, (_, n) => `order-${n}`)
    const answers = await Promise.all(ids.map(async (id) => (await ask(id)).json()))
    expect(answers.map(({ correlation_id }) => correlation_id)).toEqual(ids)
  })

  it("logs and traces as the server does", async () => {
    const spans_before = spans.length
    const lines_before = served.logged.length
    await ask("order-8")
    expect(served.logged.slice(lines_before).join()).toContain("seen by a handler")
    // Named by route: a requested path may contain private data.
    expect(spans.slice(spans_before)).toEqual(["GET /v1/blobs/seen"])
  })
})

describe("a path", () => {
  it("is read alike by the door and by its service, up to the longest", async () => {
    const path = "/v1/blobs/seen/"
    const name = "n".repeat(url_length_max - path.length)
    expect(await (await served.fetch(path + name)).json()).toBe(name.length)
    expect((await served.fetch(`/${path}`)).status).toBe(200)
  })
})

describe("a token", () => {
  it("does not appear in the text of its credentials", () => {
    const request = {
      url: "/v1/blobs",
      headers: { authorization: "Bearer hunter2hunter2" },
      source: {},
    }
    // Only client certificates need the transport, and this request has a token.
    const credentials = credentialsIn(request, {} as Parameters<typeof credentialsIn>[1])
    expect(credentials?.token?.()).toBe("hunter2hunter2")
    expect(JSON.stringify(credentials) + inspect(credentials, { depth: 9 })).not.toContain(
      "hunter2",
    )
  })
})
